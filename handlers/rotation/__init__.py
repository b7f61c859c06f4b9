"""Carries out what a person asks of a rotation run, and one turn of it."""
