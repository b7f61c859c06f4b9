"""What λ volumes looks at, and what it remembers."""
