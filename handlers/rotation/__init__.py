"""One turn of a rotation run."""
