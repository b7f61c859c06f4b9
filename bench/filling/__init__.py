"""Volumes that fill for two weeks under two rules: this project's, and a threshold's."""
