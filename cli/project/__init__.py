"""A user's own directory: where it is, what is written into it, what a newer release changes."""
