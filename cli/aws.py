"""Opens AWS as the caller, lists what it holds, and says what it refuses, for every command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from core.ground.errors import StillwaterError, one_line, passed_on
from handlers.adapters.calls import MOST_FILTERED, NO_ANSWER, portions

REMEDY = (
    "log in (`aws sso login`), name a profile in AWS_PROFILE, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
NO_CREDENTIALS = f"AWS credentials are missing here: {REMEDY}"
# Whoever answers a call it does not know: a stand-in's server.
NO_SUCH_CALL = {"404", "501", "InternalFailure", "UnknownOperationException"}
IN_REACH = (
    "Is the environment up in this account and region (`stillwater doctor ENV` shows what is "
    "missing), and may you do this?"
)
# Of whoever asks an account many questions at once.
PATIENCE = Config(
    connect_timeout=5,
    read_timeout=20,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=16,
)


def open_session(
    profile: str | None = None, region: str | None = None, core: Any = None
) -> boto3.Session:
    """Return a session that takes no proxy's page for an answer; credentials it may lack."""
    try:
        opened = boto3.Session(profile_name=profile, region_name=region, botocore_session=core)
    except BotoCoreError as error:
        raise StillwaterError(f"The AWS profile cannot be used: {sentence(error)}.") from None
    opened.events.register("before-parse", _refuse_page)
    return opened


def _refuse_page(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Raise for a page, of which botocore makes an answer that holds nothing."""
    body, status = response_dict["body"], response_dict["status_code"]  # an object is a stream
    if isinstance(body, bytes) and b"<html" in body[:1000].lower() and status < 500:
        raise ResponseParserError("a proxy answers in the place of AWS, with a page of its own")


def session(
    profile: str | None = None, region: str | None = None, core: Any = None
) -> boto3.Session:
    """Return a session that has credentials, refreshed where they had run out.

    `core` is a session of botocore's that is made already. Raises StillwaterError with the remedy
    where it has none.
    """
    opened = open_session(profile, region, core)
    try:
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
    except NO_ANSWER as error:
        raise StillwaterError(
            f"AWS does not say who is calling ({sentence(error)}); log in to {whose}, name its "
            f"profile in AWS_PROFILE, or let this machine reach AWS."
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


def pages(client: Any, operation: str, key: str, **given: Any) -> Iterator[Any]:
    """Yield what a listing holds, over all of its pages, where it comes in pages."""
    if not client.can_paginate(operation):
        yield from getattr(client, operation)(**given)[key]
        return
    for page in client.get_paginator(operation).paginate(**given):
        yield from page.get(key) or ()


def filtered_pages(
    client: Any,
    operation: str,
    key: str,
    chosen: str,
    names: Iterable[str],
    beside: Iterable[Mapping[str, object]] = (),
    **given: Any,
) -> Iterator[Any]:
    """Yield what EC2 has of some names by a filter, `chosen`, which passes over what is gone."""
    for portion in portions(sorted(set(names)), MOST_FILTERED):
        filters = [{"Name": chosen, "Values": portion}, *beside]
        yield from pages(client, operation, key, Filters=filters, **given)


def sentence(error: Exception) -> str:
    """Return an error's words on one line."""
    if isinstance(error, ClientError) and error.response["Error"]["Code"] in NO_SUCH_CALL:
        return f"{error.operation_name} is not served here"
    ours = isinstance(error, StillwaterError)
    return (" ".join(str(error).split()) if ours else one_line(error)).rstrip(".")


def out_of_reach(what: str, error: Exception) -> str:
    """Return our own sentences as they are, and AWS's words after what is wrong and to be asked."""
    ours = isinstance(error, StillwaterError)
    return str(error) if ours else passed_on(f"{what} {IN_REACH}", error)
