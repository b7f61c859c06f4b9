"""Decides what the gate reports as a responder to an Eviction of lifecycle.k8s.io/v1alpha1.

Kubernetes 1.37 (alpha, feature gate EvictionRequestAPI): who drains makes an EvictionRequest, and a
controller makes one Eviction of a pod's requests. The responders that the pod names in
`evictionResponders` are made Active one after the other, by priority; each shows a heartbeat, or
after 20 minutes the next one has its turn. The last is Kubernetes' own, which evicts the pod.

The gate is a responder that keeps its turn while Kafka needs the broker, with the sentence of its
denial as the message, and ends it once it has let the broker go: the eviction that Kubernetes then
asks for is admitted like every other. A responder that does not answer holds a broker for those 20
minutes; then Kubernetes evicts, and the webhook is asked, as without a responder.

Source: k8s.io/api v0.37.0, lifecycle/v1alpha1/types.go; k8s.io/kubernetes v1.37.0,
pkg/apis/lifecycle/validation.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.fields import part
from core.gate.asked import GateAnswer, RemovalRequest, Wish

API = "lifecycle.k8s.io/v1alpha1"
RESPONDER = "stillwater.dev/gate"
# Before the controller of the pod itself (10000), which would restart it without asking.
PRIORITY = 20_000
ACTIVE, WANTED = "Active", "Eviction"
# "Responders should avoid heartbeats more frequent than 20 seconds."
HEARTBEAT_SECONDS = 30.0
MESSAGE_CHARACTERS = 4000
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EvictionTurn:
    """An Eviction in which it is the gate's turn."""

    name: str
    namespace: str
    uid: str
    pod: str
    pod_uid: str
    requesters: tuple[str, ...]
    started_at: float
    heartbeat_at: float | None

    @property
    def asked(self) -> RemovalRequest:
        """Return the same question that an eviction by the webhook is."""
        return RemovalRequest(
            uid=self.uid,
            wish=Wish.EVICT,
            name=self.pod,
            namespace=self.namespace,
            username=" and ".join(self.requesters),
            groups=frozenset(),
            dry_run=False,
        )


def calls(evictions: Iterable[Json]) -> tuple[EvictionTurn, ...]:
    """Return the Evictions of pods in which it is the gate's turn, and somebody still wants it.

    What cannot be read is nobody's turn: Kubernetes goes on without us, and asks the webhook.
    """
    found = (_call(each) for each in evictions)
    return tuple(each for each in found if each is not None)


def report(
    call: EvictionTurn, pod_uid: str | None, answer: GateAnswer | None, now: float
) -> Json | None:
    """Return the gate's own ResponderStatus to write; None: what stands there will do.

    `pod_uid` is the pod that has the name now, None where none has; `answer` is the gate's where it
    was asked.
    """
    # Neither may go back, and two replicas have two clocks.
    latest = max(now, call.started_at, call.heartbeat_at or 0.0)
    present = dt.datetime.fromtimestamp(latest, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if pod_uid != call.pod_uid:
        return _status(present, f"Pod {call.pod} is gone.", done=True)
    if answer is None:
        return None
    if answer.allowed:
        return _status(present, answer.reason, done=True)
    fresh = call.heartbeat_at is not None and now - call.heartbeat_at < HEARTBEAT_SECONDS
    return None if fresh else _status(present, answer.reason, done=False)


def _status(present: str, message: str, *, done: bool) -> Json:
    said = {"name": RESPONDER, "heartbeatTime": present, "message": message[:MESSAGE_CHARACTERS]}
    return {**said, "completionTime": present} if done else said


def _call(eviction: Json) -> EvictionTurn | None:
    metadata, status = part(eviction.get("metadata")), part(eviction.get("status"))
    pod = part(part(part(eviction.get("spec")).get("target")).get("pod"))
    turn = _own_entry(status.get("targetResponders"))
    own = _own_entry(status.get("responders"))
    requesters = tuple(
        str(each.get("name"))
        for each in map(part, status.get("requesters") or ())
        if each.get("intent") == WANTED
    )
    started_at = _seconds(own.get("startTime"))
    idle = turn.get("state") != ACTIVE or own.get("completionTime") is not None
    if idle or started_at is None or not requesters or not pod.get("uid"):
        return None
    return EvictionTurn(
        name=str(metadata.get("name")),
        namespace=str(metadata.get("namespace")),
        uid=str(metadata.get("uid")),
        pod=str(pod.get("name")),
        pod_uid=str(pod["uid"]),
        requesters=requesters,
        started_at=started_at,
        heartbeat_at=_seconds(own.get("heartbeatTime")),
    )


def _own_entry(responders: object) -> Json:
    """Return the gate's own entry of a list of responders."""
    every = responders if isinstance(responders, list) else []
    return next((part(each) for each in every if part(each).get("name") == RESPONDER), {})


def _seconds(written: object) -> float | None:
    try:
        return dt.datetime.fromisoformat(str(written)).timestamp()
    except ValueError:
        return None
