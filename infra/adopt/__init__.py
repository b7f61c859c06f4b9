"""Builds what stands beside a cluster that exists: by names and ids, without a stack before it."""
