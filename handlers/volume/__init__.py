"""Reads what λ volumes looks at, and stores what it remembers."""
