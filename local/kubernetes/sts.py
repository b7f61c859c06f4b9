"""Answers a presigned GetCallerIdentity as STS does: pure, with access keys and time given.

moto answers anybody; an authenticator that believed it would prove nothing. This checks the
Signature Version 4 as AWS does, so a wrong secret, a changed header or an old token is refused.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from core.ground.errors import StillwaterError

# STS honours a presigned GetCallerIdentity for 15 minutes, whatever X-Amz-Expires says.
VALID_SECONDS = 900
CLOCK_SKEW_SECONDS = 300
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
EMPTY_BODY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """An access key as AWS knows it, and who it belongs to."""

    secret: str
    arn: str
    account: str
    user_id: str
    session_token: str | None = None


AccessKeys = Callable[[str], KeyOwner | None]


class RefusalError(StillwaterError):
    """STS's no, with the status and code AWS gives it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code = status, code
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        return {"Error": {"Code": self.code, "Message": str(self), "Type": "Sender"}}


def _invalid_token() -> RefusalError:
    message = "The security token included in the request is invalid."
    return RefusalError(403, "InvalidClientTokenId", message)


def _mismatch() -> RefusalError:
    message = "The request signature we calculated does not match the signature you provided."
    return RefusalError(403, "SignatureDoesNotMatch", message)


@dataclass(frozen=True, slots=True)
class PresignedRequest:
    """A presigned GET as it arrived; header names are lower case."""

    host: str
    path: str
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]

    @classmethod
    def read(cls, host: str, target: str, headers: Mapping[str, str]) -> PresignedRequest:
        url = urlsplit(target)
        lowered = {name.lower(): value for name, value in headers.items()}
        query = parse_qsl(url.query, keep_blank_values=True)
        return cls(host, url.path or "/", query, {**lowered, "host": host})

    def parameter(self, name: str) -> str:
        return dict(self.query).get(name, "")

    @property
    def signed_headers(self) -> list[str]:
        return self.parameter("X-Amz-SignedHeaders").split(";")

    def signature(self, secret: str) -> str:
        """Return the Signature Version 4 this request has under a secret."""
        scope = self.parameter("X-Amz-Credential").partition("/")[2]
        query = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(self.query)
            if name != "X-Amz-Signature"
        )
        signed = self.signed_headers
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in signed)
        parts = ("GET", self.path, query, headers, ";".join(signed), EMPTY_BODY_SHA256)
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        message = "\n".join((ALGORITHM, self.parameter("X-Amz-Date"), scope, digest))
        key = f"AWS4{secret}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def caller_identity(
    request: PresignedRequest, access_keys: AccessKeys, now: dt.datetime
) -> dict[str, Any]:
    """Return STS's answer to a presigned GetCallerIdentity, or raise its refusal."""
    action = request.parameter("Action")
    if action != "GetCallerIdentity":
        raise RefusalError(400, "InvalidAction", f"The twin's STS has no action {action!r} here.")
    principal = access_keys(request.parameter("X-Amz-Credential").partition("/")[0])
    if principal is None:
        raise _invalid_token()
    if principal.session_token not in (None, request.parameter("X-Amz-Security-Token")):
        raise _invalid_token()
    _check_age(request.parameter("X-Amz-Date"), now)
    if "host" not in request.signed_headers or not set(request.signed_headers) <= set(
        request.headers
    ):
        raise _mismatch()
    expected = request.signature(principal.secret)
    if not hmac.compare_digest(expected, request.parameter("X-Amz-Signature")):
        raise _mismatch()
    result = {"Account": principal.account, "Arn": principal.arn, "UserId": principal.user_id}
    return {
        "GetCallerIdentityResponse": {
            "GetCallerIdentityResult": result,
            "ResponseMetadata": {"RequestId": hashlib.sha256(expected.encode()).hexdigest()[:32]},
        }
    }


def _check_age(timestamp: str, now: dt.datetime) -> None:
    try:
        signed_at = dt.datetime.strptime(timestamp, TIMESTAMP_FORMAT).replace(tzinfo=dt.UTC)
    except ValueError:
        raise RefusalError(400, "IncompleteSignature", "X-Amz-Date is not a date.") from None
    age_seconds = (now - signed_at).total_seconds()
    if not -CLOCK_SKEW_SECONDS <= age_seconds <= VALID_SECONDS:
        raise RefusalError(403, "ExpiredToken", f"A signature of {timestamp} is not valid now.")
