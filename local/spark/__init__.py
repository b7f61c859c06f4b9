"""Prepares what Spark needs on this machine beside its Python package."""
