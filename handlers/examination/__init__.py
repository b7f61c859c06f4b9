"""Asks everybody who knows something about the cluster how it does."""
