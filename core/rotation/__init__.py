"""A rotation: many nodes get new instances, one after another or a party of a zone at a time.

Before a run, λ rotate asks `selection` which nodes it is about and `plan` for order, time, bytes
and what blocks. `run_record` is the run as the ledger keeps it, and what people want of it. On each
turn λ tick reads `observation` and asks `progress`, which asks `preconditions` what speaks against
a node, `parallel` who goes together with it, and `following` how those fare that are away;
`estimate` says how long a move takes. docs/rotation.md follows a run through them.
"""
