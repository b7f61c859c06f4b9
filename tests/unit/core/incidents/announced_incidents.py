"""Incidents as announcements open them, and what is seen of their instance."""

from core.events import Interruption, Kind
from core.incidents.actions import settle
from core.incidents.decide import next_action
from core.incidents.joining import open_incident
from core.incidents.learn import learn
from core.incidents.observation import InstanceView, Observation, Policy
from core.incidents.record import Incident
from tests.unit.policies import policy_with

POLICY = policy_with(hold_limit_seconds=600, post_condition_hold_seconds=5)
OLD, NEW = "i-old", "i-new"


def announcement(kind: Kind = Kind.ASG_TERMINATE, **changes: object) -> Interruption:
    said: dict[str, object] = {
        "kind": kind,
        "instance_id": OLD,
        "event_id": "e",
        "dedupe_key": f"{kind}:{changes.get('hook', '')}:{changes.get('closed', '')}",
        "account": None,
        "region": None,
        "occurred_at": 0.0,
        "group": "g" if kind is Kind.ASG_TERMINATE else None,
        "body": f"{kind} {changes.get('hook', '')}",
        **changes,
    }
    return Interruption(**said)  # type: ignore[arg-type]


def opened_incident(kind: Kind = Kind.ASG_TERMINATE, **changes: object) -> Incident:
    if kind is Kind.ASG_TERMINATE:
        changes = {"hook": "drain", "lifecycle_token": "t", **changes}
    return open_incident(announcement(kind, **changes), 0.0)


def observation(now: float = 1.0, **changes: object) -> Observation:
    instance = InstanceView(instance_id=OLD, state="running", zone="z", private_dns_name="old")
    return Observation(now=now, **{"instance": instance, **changes})  # type: ignore[arg-type]


def step(incident: Incident, observation: Observation, policy: Policy = POLICY) -> Incident:
    return settle(
        learn(incident, observation),
        next_action(learn(incident, observation), observation, policy),
        observation.now,
    )
