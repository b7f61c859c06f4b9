"""One incident per zone in trouble: what is remembered, what bears it out, how it is stored."""
