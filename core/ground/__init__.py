"""Holds one idea a module, which all of core stands on: names, times, errors, what is unknown."""
