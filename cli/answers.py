"""Asks for many answers, so that one that cannot be read costs no other and names its remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from cli.aws import sentence
from core.ground.errors import StillwaterError, one_line
from core.ground.fields import Unknown
from handlers.adapters.calls import NO_ANSWER
from infra.eks.api import ApiError

LOGIN = "log in again (such as `aws sso login`), or name another --profile; then ask again"
ENDED = frozenset(
    {
        *("AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"),
        *("InvalidAccessKeyId", "RequestExpired", "UnrecognizedClientException"),
        *("SignatureDoesNotMatch", "InvalidSignatureException", "OptInRequired"),
    }
)
UNFORESEEN = "look at what it is about yourself, and tell the authors of Stillwater"
WAIT = "wait a minute, and ask again"
AWAY = frozenset(
    {
        *("InternalError", "InternalFailure", "InternalServerError", "RequestLimitExceeded"),
        *("RequestThrottled", "ServiceUnavailable", "ServiceUnavailableException", "SlowDown"),
        *("Throttling", "ThrottlingException", "TooManyRequestsException", "Unavailable"),
    }
)
WITHOUT_LOGIN = (
    *(NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, ProfileNotFound),
    *(SSOError, TokenRetrievalError),
)
UNAUTHORIZED, BUSY, BROKEN = 401, 429, 500


def remedy_of(error: Exception) -> str:
    """Return what to do about an error; empty: nothing that is more than usual."""
    if isinstance(error, WITHOUT_LOGIN):
        return LOGIN
    if isinstance(error, ClientError):
        return _aws_remedy(error)
    if isinstance(error, ApiError):
        return _kubernetes_remedy(error)
    if isinstance(error, ConnectionError | HTTPClientError | ResponseParserError):
        return "let this machine reach AWS's endpoints in that region, and ask again"
    if isinstance(error, StillwaterError):
        return _reading_remedy(str(error))
    return "" if isinstance(error, BotoCoreError | OSError) else UNFORESEEN


def _reading_remedy(said: str) -> str:
    """Return what to do about an answer that was read, and says too little."""
    if "another object" in said:
        return "read it there yourself, or set it where its workload is described; ask again"
    if "--" in said or "account" in said:
        return "name another --profile, --region or --context, and ask again"
    return "see to what it says, and ask again"


def _aws_remedy(error: ClientError) -> str:
    said = error.response["Error"]
    if said.get("Code") in ENDED:
        return LOGIN
    if said.get("Code") in AWAY:
        return WAIT
    message = str(said.get("Message") or "")
    for policy in ("service control policy", "resource control policy", "permissions boundary"):
        if policy in message:
            return (
                f"ask the owner of the {policy} that denies it, since it overrides the caller's "
                "own rights; then ask again"
            )
    return ""


def _kubernetes_remedy(error: ApiError) -> str:
    if error.status == UNAUTHORIZED:
        return LOGIN
    if error.status == BUSY or error.status >= BROKEN:
        return WAIT
    if not error.status:
        return (
            "reach its API server without a proxy, from inside its VPC or by a VPN where its "
            "endpoint is private; then ask again"
        )
    return ""


T = TypeVar("T")
F = TypeVar("F")
S = TypeVar("S", bound=Sized)


def answer_or_reason(ask: Callable[..., T], *given: object) -> T | Unknown:
    """Return an answer, or why there is none."""
    try:
        return ask(*given)
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        return unknown_answer(error)


def unknown_answer(error: Exception) -> Unknown:
    """Return why there is no answer, and what to do about it."""
    if isinstance(error, (*NO_ANSWER, StillwaterError, OSError)):
        return Unknown(sentence(error), remedy_of(error))
    said = one_line(f"{type(error).__name__}: {error}")
    return Unknown(f"the answer is not as documented ({said})", remedy_of(error))


def then(found: F | Unknown, ask: Callable[[F], T]) -> T | Unknown:
    """Ask on the strength of an earlier answer; without it nothing is known here either."""
    return found if isinstance(found, Unknown) else answer_or_reason(ask, found)


def then_any(found: S | Unknown, ask: Callable[[S], Mapping[str, T]]) -> Mapping[str, T] | Unknown:
    """Ask on the strength of an earlier answer, and nobody where that names nothing."""
    return then(found, lambda known: ask(known) if known else {})
