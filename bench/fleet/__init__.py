"""A whole cluster on the twin under a live load, for bench.rotation and bench.chaos."""
