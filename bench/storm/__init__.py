"""What bench.interruptions measures on: a burst of announcements, and what they are about."""
