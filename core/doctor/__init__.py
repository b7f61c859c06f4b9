"""Compares a live account and cluster with what their spec asks for."""
