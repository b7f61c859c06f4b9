"""Decides a rotation: many nodes get new instances, one by one or a party of a zone at a time.

Before a run, λ rotate asks `plan` for nodes, order, time, bytes and what blocks. `run_record` is
the run as the ledger keeps it. On each turn λ tick asks `progress`, which asks `preconditions` what
speaks against a node, `parallel` who goes together with it, and `following` how those fare that
are away; `estimate` says how long a move takes. docs/rotation.md follows a run through them.
"""
