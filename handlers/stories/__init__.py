"""Tells incidents and rotation runs in Slack, each in a thread of its own."""
