"""Drives the real Pulumi engine through its Automation API; knows no twin and no account."""
