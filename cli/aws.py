"""Opens sessions with AWS under the caller's identity; without one, every command says the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.refusals import sentence
from core.errors import StillwaterError

REMEDY = (
    "log in (`aws sso login`), name a profile in AWS_PROFILE, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
NO_CREDENTIALS = f"There are no AWS credentials here: {REMEDY}"


def session(profile: str | None = None, region: str | None = None) -> boto3.Session:
    """Return a session that has credentials, refreshed where they had run out.

    Raises StillwaterError with the remedy where it has none.
    """
    try:
        opened = boto3.Session(profile_name=profile, region_name=region)
        credentials = opened.get_credentials()
        if credentials is not None:
            credentials.get_frozen_credentials()
    except BotoCoreError as error:
        said = f"The AWS credentials cannot be used ({sentence(error)}): {REMEDY}"
        raise StillwaterError(said) from None
    if credentials is None:
        raise StillwaterError(NO_CREDENTIALS)
    return opened


@contextmanager
def require_login(whose: str) -> Iterator[None]:
    """Turn it into a sentence that STS does not say who calls."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StillwaterError(
            f"AWS does not say who is calling ({sentence(error)}); log in to {whose}, or name its "
            f"profile in AWS_PROFILE."
        ) from None


class Clients:
    """The clients of a session, each made once, at its first call.

    Threads may share a client; a session makes one at a time, and some answer KeyError otherwise.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make, self._making = make, threading.Lock()
        self._made: dict[Hashable, Any] = {}

    def __call__(self, service: str, **given: Any) -> Any:
        """Return the client of a service, as `make(service, **given)` makes it."""
        key = (service, *sorted(given.items()))
        with self._making:
            if key not in self._made:
                self._made[key] = self._make(service, **given)
            return self._made[key]
