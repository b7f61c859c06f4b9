"""Reads what the API server asks before it evicts or deletes something, and writes the answer.

Source: the AdmissionReview of admission.k8s.io/v1; pods/eviction of policy/v1 (an Eviction names
its pod and nothing of it), deletions of pods and nodes with the object as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Protocol

from core.errors import InvalidInput
from core.fields import part

API_VERSION = "admission.k8s.io/v1"
# Where the API server asks, with a token behind it (ADR 0030), and how long it waits at most; the
# gate answers well within that.
PATH = "/evictions"
TIMEOUT_SECONDS = 10
Json = Mapping[str, Any]


class Wish(StrEnum):
    """What somebody wants of the API server."""

    EVICT = "evict"
    DELETE_POD = "delete_pod"
    DELETE_NODE = "delete_node"
    OTHER = "other"  # the configuration asks about nothing else; then it is not ours


_WISHES: Mapping[tuple[str, str, str], Wish] = {
    ("CREATE", "pods", "eviction"): Wish.EVICT,
    ("DELETE", "pods", ""): Wish.DELETE_POD,
    ("DELETE", "nodes", ""): Wish.DELETE_NODE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRequest:
    """One request that waits for an answer."""

    uid: str
    wish: Wish
    name: str  # of the pod or the node
    namespace: str
    username: str
    groups: frozenset[str]
    dry_run: bool
    # What it gives the pod to stop in; None: the pod's own time.
    grace_seconds: float | None = None
    # The pod or node that is to be deleted; an eviction does not show its pod.
    shown: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Yes or not yet, and the sentence that whoever asked reads."""

    allowed: bool
    reason: str


class Decider(Protocol):
    """Whoever decides: the gate itself."""

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        """Answer before the deadline, in epoch seconds."""


def asked_in(review: object) -> RemovalRequest:
    """Read an AdmissionReview; raises InvalidInput, with what is wrong with it."""
    problems: list[str] = []
    request = _mapping(_mapping(review, "review", problems).get("request"), "request", problems)
    user = _mapping(request.get("userInfo"), "request.userInfo", problems)
    resource = _mapping(request.get("resource"), "request.resource", problems)
    uid = _text(request.get("uid"), "request.uid", problems)
    if problems:
        raise InvalidInput(problems)
    shown = part(request.get("oldObject"))
    key = (
        str(request.get("operation", "")),
        str(resource.get("resource", "")),
        str(request.get("subResource") or ""),
    )
    groups = user.get("groups")
    return RemovalRequest(
        uid=uid,
        wish=_WISHES.get(key, Wish.OTHER),
        name=str(request.get("name") or part(shown.get("metadata")).get("name") or ""),
        namespace=str(request.get("namespace") or ""),
        username=str(user.get("username") or ""),
        groups=frozenset(map(str, groups)) if isinstance(groups, list) else frozenset(),
        dry_run=request.get("dryRun") is True or bool(_eviction_options(request).get("dryRun")),
        grace_seconds=_grace_seconds(request),
        shown=shown,
    )


def review_of(asked_uid: str, answer: GateAnswer) -> dict[str, Any]:
    """Write an answer as the API server takes it.

    429, as a disruption budget's own refusal: whoever drains asks again later, where any other
    status ends a `kubectl drain`. No Retry-After: a client that is told one waits in silence.
    """
    response: dict[str, Any] = {"uid": asked_uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = {
            "status": "Failure",
            "code": HTTPStatus.TOO_MANY_REQUESTS.value,
            "reason": "TooManyRequests",
            "message": answer.reason,
        }
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _eviction_options(request: Json) -> Json:
    """Return an eviction's own deleteOptions."""
    return part(part(request.get("object")).get("deleteOptions"))


def _grace_seconds(request: Json) -> float | None:
    """Return what a deletion's options, or an eviction's, say of the time to stop in."""
    said = [_eviction_options(request), part(request.get("options"))]
    found = [each["gracePeriodSeconds"] for each in said if "gracePeriodSeconds" in each]
    return next((float(each) for each in found if isinstance(each, int)), None)


def _mapping(value: object, path: str, problems: list[str]) -> Json:
    if isinstance(value, Mapping):
        return value
    if not problems:
        problems.append(f"{path} is {str(value)[:40]!r}, and must be an object of {API_VERSION}")
    return {}


def _text(value: object, path: str, problems: list[str]) -> str:
    if isinstance(value, str) and value:
        return value
    if not problems:
        problems.append(f"{path} is {str(value)[:40]!r}, and must be text that is not empty")
    return ""
