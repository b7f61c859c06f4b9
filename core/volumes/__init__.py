"""Volumes that grow and speed up by themselves: what AWS allows, what is needed and decided."""
