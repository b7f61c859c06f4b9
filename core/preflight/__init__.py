"""Decides whether an account would let a cluster be made: what it says against what is needed.

account (what was read, with what could not be) -> judge (a sentence with its remedy for each
refusal to come) -> the `preflight` command. Nothing is guessed: what was not read is said to be
unknown.
"""
