"""Writes what people are told: an incident, or a rotation run, as one Slack thread."""
