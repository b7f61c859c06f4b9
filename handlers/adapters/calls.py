"""Bounds how the handlers call others: how long AWS is waited for, how much is asked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

T = TypeVar("T")
# A tick comes again soon: better to fail it than to wait for the default minute.
CLIENT = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard"})
# Of whoever looks through many volumes, which takes EC2 and CloudWatch longer.
PATIENT_CLIENT = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard"})
# For what must not be asked twice: the client does not repeat what AWS may have done.
ONE_TRY = CLIENT.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
PERHAPS_DONE = (ReadTimeoutError, ConnectionClosedError)


def perhaps_done(error: ClientError) -> bool:
    """Say whether AWS may have done what it answered with a fault of its own."""
    return bool(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500)


def portions(things: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield things in their order, at most so many at a time."""
    every = list(things)
    for start in range(0, len(every), most):
        yield every[start : start + most]
