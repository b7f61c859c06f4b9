"""`stillwater doctor`: what a live account and cluster have drifted from, read and never written.

cli.target (whose account, which spec) -> account and cluster (the readers) -> examine (all of them
at once, into one core.checks.facts.Snapshot) -> core.checks.drift -> report.
"""
