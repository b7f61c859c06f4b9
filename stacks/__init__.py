"""Runs under `pulumi up`: five layers of one cluster, each a stack of its own.

    foundation -> platform -> kafka -> operations -> analytics

A layer reads what earlier ones export, so that no preview meets a cluster that does not exist yet.
"""
