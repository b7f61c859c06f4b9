"""Bills, their tables, and the job that makes them."""
