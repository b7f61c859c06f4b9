"""Renders docs/reference/ from the code; for developers, so it is not installed."""
