"""Holds one table of rules about a cluster, asked of whatever facts there are.

`check` has a description, `preflight` an account, `survey` and `doctor` a live cluster. A rule is
asked where its facts are; what it finds is a Finding: a name, a weight, the evidence, the remedy.
"""
