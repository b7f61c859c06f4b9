"""`stillwater fleet`: many clusters in waves, by one file and no state of its own."""
