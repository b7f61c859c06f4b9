"""Decides whether a Kafka pod may be evicted or deleted now, of one reading and what is recorded.

    nobody's turn yet     no, with the partition, the holder of the lease or what is missing
    its turn, by us       an incident whose drain was sent admits its own node's pod, whoever evicts
    nothing against it    yes, once the lease is held and a reading made since says the same

handlers.eviction carries it out: it opens the incident that a refusal waits for, takes the lease,
reads once more, and records the drain before anybody is let through. Kubernetes' own controllers
delete pods without being asked; evictions are always asked about. Of a Kafka that exists pools come
and go: the webhook is narrowed to pods that Strimzi's pod sets name. Sources: AdmissionReview of
admission.k8s.io/v1, Eviction of policy/v1, controller roles (docs/reference/access-authn-authz).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from core.availability.lease import Lease
from core.ground.errors import InvalidInput
from core.ground.fields import part
from core.incidents.actions import Decision, asked_for, settle
from core.incidents.consenting import consent
from core.incidents.evicted import hindrance, starts_again_in_place
from core.incidents.learn import forced_soon
from core.incidents.observation import Observation, PodView, Policy
from core.incidents.record import UNDRAINED, Incident, Replacement, State
from core.incidents.replacement import replacement_for

# The webhook that is asked about evictions, and the condition in it that the gate writes.
EVICTIONS, KNOWN = "evictions.stillwater.dev", "of-its-pools"


def condition(pod_names: Iterable[str]) -> str | None:
    """Return what is true of the names of a Kafka's pods, present and next; None: none is known.

    >>> condition(["orders-a-7", "orders-b-8", "orders-b-9"])
    "request.name.matches('^(orders-a|orders-b)-[0-9]+$')"
    """
    pools = sorted({name.rpartition("-")[0].replace(".", "[.]") for name in pod_names})
    return f"request.name.matches('^({'|'.join(pools)})-[0-9]+$')" if pools else None


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


_SYSTEM = "system:serviceaccount:kube-system:"
NODE_CONTROLLERS = frozenset(
    {f"{_SYSTEM}{name}" for name in ("node-controller", "taint-eviction-controller")}
)
# Kubernetes' controllers under one name, where they are not given accounts of their own.
MANAGER = "system:kube-controller-manager"
CLEANERS: Mapping[str, str] = {
    f"{_SYSTEM}generic-garbage-collector": "its owner is gone, so the garbage collector follows",
    f"{_SYSTEM}pod-garbage-collector": "its node is gone or out of service",
    f"{_SYSTEM}namespace-controller": "its namespace is being deleted",
    MANAGER: "Kubernetes' own controllers clean up",
}


def reason_not_to_ask(
    asked: RemovalRequest,
    *,
    operators: frozenset[str],
    node_name: str | None,
    node_ready: bool | None,
) -> str | None:
    """Return why a deletion needs no answer of Kafka's; None: it does.

    `node_name` is the pod's own node, and `node_ready` whether that serves; None: not known.
    """
    if asked.wish is not Wish.DELETE_POD:
        return None
    user = asked.username
    if user in operators:
        return "Kafka's operator rolls its own pods by its own rules."
    if user in CLEANERS:
        return f"Pod {asked.name} is cleaned up: {CLEANERS[user]}."
    if node_name is not None and user == f"system:node:{node_name}":
        return f"The kubelet of {node_name} removes a pod that has ended."
    if user in NODE_CONTROLLERS and node_ready is False:
        # A taint on a machine that serves is somebody's drain by another name, and is asked.
        return f"{node_name} is not Ready: its pods have to start elsewhere."
    return None


ACTOR = "gate"
ASKS_FIRST_SECONDS = 60.0
# Karpenter gives less than a pod's own time from its deadline's last moment on, by its own clock.
CLOCKS_APART_SECONDS = 30.0
# In the place of a reading that is only taken with the lease in hand; it is no consent.
ASKED_LAST = "The webhook asks Kafka once it has the lease."


@dataclass(frozen=True, slots=True)
class Ruling:
    """What to answer; `turn` is the incident as it stands once its node may go."""

    answer: GateAnswer
    turn: Incident | None = None  # only after the lease was taken and everything was read again
    waits: bool = False  # the refusal waits for something that the incident's own loop brings
    unasked: bool = False  # nothing but Kafka is left to ask: nobody is let through on this ruling


def allow_if_gone(pod: PodView | None, name: str) -> GateAnswer | None:
    """Allow what takes nothing away: no such Kafka pod runs, or it has been told to stop."""
    if pod is None:
        return GateAnswer(allowed=True, reason=f"{name} is not a running pod of Kafka's.")
    if pod.stopping:
        return GateAnswer(allowed=True, reason=f"{name} already stops.")
    if pod.node_name is None:
        return GateAnswer(allowed=True, reason=f"{name} runs nowhere yet.")
    return None


def too_hasty(asked: RemovalRequest, pod: PodView, incident: Incident, now: float) -> str | None:
    """Return why a broker may not be cut off in the middle of its shutdown; None: it is not.

    A machine that ends anyway leaves it the time that there is. A deadline days ahead ends nothing
    yet: until it leaves the pod less than its own time, nobody has a reason to give it less.
    """
    given, own = asked.grace_seconds, pod.grace_seconds
    forced = forced_soon(incident, now, CLOCKS_APART_SECONDS)
    ends = incident.urgent or incident.lost_at is not None or forced
    if given is None or own is None or given >= own or ends:
        return None
    return (
        f"{pod.name} has {own:.0f} s to stop in, and this gives it {given:.0f}: it would be cut "
        f"off, and read its whole log when it starts. Leave the grace period out."
    )


def rule(
    asked: RemovalRequest, incident: Incident, seen: Observation, policy: Policy, own: Lease | None
) -> Ruling:
    """Decide about a pod that runs, by the incident of its node and a reading of everything."""
    if seen.blind:
        return refuse(seen.blind, policy)
    by_us = _own_ruling(asked, incident, seen, policy, own)
    if by_us is not None:
        return by_us
    if incident.state not in UNDRAINED or not asked_for(incident, policy):
        return refuse(
            f"Incident {incident.id} ({incident.kind}) sees to it: {incident.reason}", policy
        )
    ready = _note_replacement(asked, incident, seen)
    refusal = hindrance(ready, seen, policy)
    if refusal == ASKED_LAST:
        return replace(refuse(refusal, policy), turn=_walk_to_turn(ready, seen), unasked=True)
    if refusal is not None:
        return replace(refuse(refusal, policy), waits=not _restarts(asked, incident, seen))
    reason = f"Kafka node {incident.node_id} may leave {incident.node_name}: {_asker_words(asked)}."
    return Ruling(GateAnswer(allowed=True, reason=reason), turn=_walk_to_turn(ready, seen))


def asks_last(
    asked: RemovalRequest, incident: Incident, refused_at: float | None, now: float
) -> bool:
    """Say whether Kafka is asked with the lease in hand alone, so that a yes takes one reading.

    A rehearsal takes no lease. Whom Kafka refused lately is asked about first: one that is told no
    every five seconds would else take the lease from the others as often.
    """
    lately = refused_at is not None and now - refused_at < ASKS_FIRST_SECONDS
    return incident.state in UNDRAINED and not lately and not asked.dry_run


def refuse(reason: str, policy: Policy) -> Ruling:
    """Refuse for now, and say when to ask again."""
    again = f"Ask again in {policy.tick_interval_seconds:.0f} s."
    return Ruling(GateAnswer(allowed=False, reason=f"{reason.rstrip()} {again}"))


def let_through(turn: Incident, reason: str, now: float) -> Incident:
    """Record that an eviction was let through, with the lease in use for it."""
    decided = Decision(state=State.DRAINING, reason=reason, delay_seconds=0.0, forwarded_at=now)
    return settle(turn, decided, now, actor=ACTOR)


def _own_ruling(
    asked: RemovalRequest, incident: Incident, seen: Observation, policy: Policy, own: Lease | None
) -> Ruling | None:
    """Answer for a node whose own incident drains it; None: it does not, or asks nobody first."""
    if incident.lost_at is not None:
        return Ruling(
            GateAnswer(allowed=True, reason=f"Instance {incident.instance_id} has ended.")
        )
    if incident.state is not State.DRAINING:
        return None
    if incident.urgent:
        reason = f"EC2 takes instance {incident.instance_id} within two minutes."
        return Ruling(GateAnswer(allowed=True, reason=reason))
    sent = own is not None and own.forwarded_at is not None and own.node_id == incident.node_id
    if not sent:
        return None
    # Kafka is asked once more: what was true when the drain was sent may be so no longer.
    allowed, reason = consent(incident, seen, policy)
    if incident.replacement_node == incident.node_name and asked.wish is Wish.EVICT:
        allowed, reason = _has_place(incident, seen, allowed=allowed, reason=reason)
    if not allowed:
        return refuse(reason, policy)
    return Ruling(GateAnswer(allowed=True, reason=f"Incident {incident.id} drains it. {reason}"))


def _has_place(
    incident: Incident, seen: Observation, *, allowed: bool, reason: str
) -> tuple[bool, str]:
    """Return consent to evict what was let go to start again in its place, if it has another."""
    if replacement_for(incident, seen) is not None:
        return allowed, reason
    lacking = (
        f"{incident.pod_name} was let go to start again on {incident.node_name}, and no other node "
        f"of {incident.zone} is ready to take it."
    )
    return False, lacking


def _restarts(asked: RemovalRequest, incident: Incident, seen: Observation) -> bool:
    """Say whether a pod is only deleted, on a node that takes it again."""
    return asked.wish is Wish.DELETE_POD and starts_again_in_place(incident, seen)


def _note_replacement(asked: RemovalRequest, incident: Incident, seen: Observation) -> Incident:
    """Return the incident with the place the pod goes to: a ready node, or its own."""
    if incident.node_name is not None and _restarts(asked, incident, seen):
        own = Replacement(node=incident.node_name, ready_at=seen.now)
        return replace(incident, replacement=own)
    found = replacement_for(incident, seen)
    if found is None or found.name == incident.replacement_node:
        return incident
    return replace(incident, replacement=Replacement(node=found.name, ready_at=seen.now))


def _walk_to_turn(incident: Incident, seen: Observation) -> Incident:
    """Walk an incident to its turn, so that its story has every step."""
    for state in (State.REPLACING, State.HOLDING):
        if UNDRAINED.index(state) > UNDRAINED.index(incident.state):
            place = incident.replacement_node
            has = f"has a place to go: {place}" if place else "may go without a place to go to"
            reason = f"{incident.pod_name} {has}."
            decided = Decision(state=state, reason=reason, delay_seconds=0.0)
            incident = settle(incident, decided, seen.now, actor=ACTOR)
    return incident


def _asker_words(asked: RemovalRequest) -> str:
    done = "evicts" if asked.wish is Wish.EVICT else "deletes"
    return f"{asked.username} {done} {asked.name}"
