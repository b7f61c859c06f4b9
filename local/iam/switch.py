"""Tells whether this twin's IAM refuses anything, for every program of the twin that takes part."""

from __future__ import annotations

import os

# `off`: every call is answered, as moto answers it.
SWITCH, ON = "STILLWATER_IAM", "on"
# The one constant that turns IAM on or off where nobody says it.
BY_DEFAULT = ON


def is_enforced() -> bool:
    """Say whether calls are judged."""
    return os.environ.get(SWITCH, BY_DEFAULT) == ON
