"""Starts what bench.resync measures on: bare Kafka nodes, one of which goes and comes back."""
