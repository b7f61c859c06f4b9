"""What the functions of an explored world are told where nothing of it is modelled, or it fails."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from core.availability.lease import LeaseDecision
from core.ground.errors import Conflict, StillwaterError
from handlers.adapters.aws import Secret
from handlers.webhook import TOKEN_HEADER


class Token(Secret):
    """The secret that the termination handler knows, too."""

    def __init__(self) -> None:
        self._known, self._clock = ("known", 0.0), lambda: 0.0


def posted(body: str) -> dict[str, Any]:
    headers = {TOKEN_HEADER: Token().value()}
    return {"body": body, "headers": headers, "requestContext": {"http": {"method": "POST"}}}


def lost_race(name: str) -> Any:
    """Answer as the ledger does where somebody else has written at the same moment."""
    if name in {"ledger.take_lease", "ledger.begin_drain"}:
        return LeaseDecision(granted=False, leases=(), reason="Another asked at the same moment.")
    raise Conflict("It was changed by another invocation.")


def failure(service: str, name: str) -> Exception:
    if service in {"api", "kafka"}:
        return StillwaterError(f"{name} was not answered.")
    error = {"Error": {"Code": "InternalError", "Message": f"{name} failed."}}
    return ClientError(error, name)  # type: ignore[arg-type]


def refusal(message: str, operation: str) -> ClientError:
    """Return what AWS says to a request that it does not accept as it is."""
    error = {"Error": {"Code": "ValidationError", "Message": message}}
    return ClientError(error, operation)  # type: ignore[arg-type]
