"""Whether this twin's IAM refuses anything; read by every program of the twin that takes part."""

from __future__ import annotations

import os

# `on` or `off`: off, every call is answered, as moto answers it.
SWITCH, ON = "STILLWATER_IAM", "on"
BY_DEFAULT = "off"


def enforced() -> bool:
    """Say whether calls are judged."""
    return os.environ.get(SWITCH, BY_DEFAULT) == ON
