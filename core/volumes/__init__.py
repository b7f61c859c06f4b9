"""Volumes that grow and speed up by themselves: what AWS allows, what is needed, what is decided.

limits      what a gp3 volume may be
sizing      what a volume should be, from what is measured of it
"""
