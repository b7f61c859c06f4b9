"""The eviction gate in the cluster: its pods, what they may do, and when the API server asks."""
