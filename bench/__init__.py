"""Measurements beside what a user would otherwise pick; each writes out/bench/NAME.json."""
