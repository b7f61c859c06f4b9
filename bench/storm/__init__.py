"""Builds what bench.interruptions measures on: a burst of announcements, and their subjects."""
