"""Decides what is healthy: verdicts as pure functions of what was observed, and when.

Every module here takes observations and the time, and answers with a `HealthVerdict`. Where a
source did not answer, the verdict is unknown and names it; unknown is never healthy.
"""
