"""What stands beside a cluster that exists: by names and ids, without a stack of ours before it."""
