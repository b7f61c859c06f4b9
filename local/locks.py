"""Which AWS calls may run side by side in the twin.

moto's server answers every request in a thread of its own while its backends are plain
dictionaries: of 24 writers with attribute_not_exists, two won in 1 of 200 rounds. AWS promises
that one wins, and the ledger is built on that promise, so such services take turns here.

Order when one holds several: COMPUTE before EVENTS before a queue's own lock.
"""

from __future__ import annotations

import contextlib
import threading
from contextlib import AbstractContextManager

COMPUTE = threading.RLock()
EVENTS = threading.RLock()
IDENTITY = threading.RLock()
TABLES = threading.RLock()

# Services without an entry have none: Lambda because a function calls back while it is invoked,
# SQS because a long poll waits (its queues have locks of their own, see queues.py).
BY_SERVICE = {
    "autoscaling": COMPUTE,
    "ec2": COMPUTE,
    "eks": COMPUTE,
    "elasticloadbalancing": COMPUTE,
    "events": EVENTS,
    "dynamodb": TABLES,
    "iam": IDENTITY,
    "sts": IDENTITY,
}


def turn(service: str) -> AbstractContextManager[object]:
    """Return the lock a request holds while it is answered, by the service it is signed for."""
    return BY_SERVICE.get(service, contextlib.nullcontext())
