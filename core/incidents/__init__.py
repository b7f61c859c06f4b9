"""One incident per instance that leaves: what is remembered, what is seen, what is next."""
