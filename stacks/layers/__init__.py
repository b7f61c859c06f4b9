"""Builds the layers, one file each.

A folder of their own: the engine puts stacks/ on the import path, where a platform.py or a kafka.py
would hide the modules of those names.
"""
