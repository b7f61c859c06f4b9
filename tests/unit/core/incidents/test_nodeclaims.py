"""NodeClaims: why Karpenter ends a node and until when it asks, odd claims included.

The shapes are those of karpenter.sh/v1 as release 1.14.1 writes them.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.learn import disruption_of
from core.incidents.observation import (
    DEADLINE_ANNOTATION,
    DO_NOT_DISRUPT,
    NodeClaim,
    ScheduledEvent,
    StatusView,
    claim_in,
)
from core.incidents.record import Reason
from core.incidents.replacement import coming
from tests.every_case import every_case

BORN, DELETED = "2026-11-01T10:00:00Z", "2026-11-20T10:00:00Z"
DELETED_AT = 1_795_168_800.0
NOW = DELETED_AT + 60
POOLS = {"stillwater.dev/node-pool": ()}


def claim(
    *conditions: dict[str, str],
    metadata: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> NodeClaim:
    item = {
        "metadata": {
            "name": "broker-a-7xkqz",
            "uid": "u-7",
            "creationTimestamp": BORN,
            "labels": {
                "karpenter.sh/nodepool": "broker-a",
                "stillwater.dev/node-pool": "broker",
                "topology.kubernetes.io/zone": "us-east-1a",
            },
            **(metadata or {}),
        },
        "spec": {"expireAfter": "Never", **(spec or {})},
        "status": {
            "providerID": "aws:///us-east-1a/i-0a",
            "nodeName": "ip-i-0a.ec2.internal",
            "conditions": [condition("Initialized"), *conditions],
            **(status or {}),
        },
    }
    return claim_in(item, POOLS)


def condition(
    kind: str, status: str = "True", reason: str = "", message: str = ""
) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason or kind, "message": message}


def deleted(*conditions: dict[str, str], **parts: Any) -> NodeClaim:
    annotations = parts.pop("annotations", {})
    metadata = {"deletionTimestamp": DELETED, "annotations": annotations}
    return claim(*conditions, metadata=metadata, **parts)


def scheduled(description: str = "") -> StatusView:
    event = ScheduledEvent(
        event_id="e", code="instance-retirement", description=description, not_before=None
    )
    return StatusView(instance_id="i-0a", events=(event,))


def reason_of(found: NodeClaim, status: StatusView | None = None) -> Reason | None:
    disruption = disruption_of(found, NOW, status)
    return None if disruption is None else disruption.reason


def test_a_claim_names_its_node_instance_zone_and_pool() -> None:
    found = claim()
    assert (found.instance_id, found.node_name) == ("i-0a", "ip-i-0a.ec2.internal")
    assert (found.zone, found.pool) == ("us-east-1a", "broker")
    assert found.serves
    assert disruption_of(found, NOW) is None


@pytest.mark.parametrize("kind", ["Drifted", "Consolidatable", "Ready", "Drained"])
def test_what_karpenter_only_might_do_is_no_disruption(kind: str) -> None:
    """A budget of none keeps a drifted node for ever."""
    assert disruption_of(claim(condition(kind)), NOW) is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("Drifted", Reason.DRIFT),
        ("Underutilized", Reason.CONSOLIDATION),
        ("Empty", Reason.CONSOLIDATION),
        ("SomethingNew", Reason.UNTOLD),
    ],
)
def test_a_marked_claim_names_its_reason_and_has_not_begun(word: str, reason: Reason) -> None:
    marked = claim(
        condition("DisruptionReason", reason=word), spec={"terminationGracePeriod": "1h"}
    )
    found = disruption_of(marked, NOW)
    assert (found.reason, found.begun, found.deadline) == (reason, False, None)
    assert not marked.serves
    assert reason_of(deleted(condition("DisruptionReason", reason=word))) is reason


def test_an_old_claim_that_is_deleted_has_expired() -> None:
    assert reason_of(deleted(spec={"expireAfter": "456h"})) is Reason.EXPIRY  # 19 days
    rotated = disruption_of(deleted(spec={"expireAfter": "456h"}), NOW, rotated=True)
    assert rotated is not None
    assert rotated.reason is Reason.EXPIRY
    assert reason_of(deleted(spec={"expireAfter": "457h"})) is Reason.UNTOLD
    assert reason_of(deleted(spec={"expireAfter": "Never"})) is Reason.UNTOLD


def test_an_event_that_ec2_plans_is_an_interruption_and_one_that_is_over_is_not() -> None:
    assert reason_of(deleted(), scheduled()) is Reason.INTERRUPTION
    assert reason_of(deleted(), scheduled("[Completed] moved")) is Reason.UNTOLD
    assert reason_of(deleted(), StatusView(instance_id="i-0a")) is Reason.UNTOLD


def test_a_deadline_at_the_deletion_itself_is_a_repair() -> None:
    at_once = {DEADLINE_ANNOTATION: "2026-11-20T09:59:59Z"}
    found = disruption_of(deleted(annotations=at_once), NOW)
    assert (found.reason, found.deadline) == (Reason.REPAIR, DELETED_AT - 1)
    # A short grace that a person set is none.
    short = {DEADLINE_ANNOTATION: "2026-11-20T10:00:30Z"}
    assert reason_of(deleted(annotations=short, spec={"terminationGracePeriod": "30s"})) is (
        Reason.UNTOLD
    )


def test_the_deadline_is_the_deletion_and_the_grace_or_what_karpenter_wrote() -> None:
    def deadline(**parts: Any) -> float | None:
        return disruption_of(deleted(**parts), NOW).deadline

    assert deadline() is None
    assert deadline(spec={"terminationGracePeriod": "1h30m"}) == DELETED_AT + 5400
    written = {DEADLINE_ANNOTATION: "2026-11-20T12:00:00Z"}
    assert deadline(annotations=written) == DELETED_AT + 7200
    assert deadline(annotations=written, spec={"terminationGracePeriod": "1h"}) == DELETED_AT + 7200


@pytest.mark.parametrize(
    "odd",
    [
        deleted(spec={"terminationGracePeriod": "soon"}),
        deleted(annotations={DEADLINE_ANNOTATION: "tomorrow"}),
        claim(metadata={"deletionTimestamp": "now"}, spec={"terminationGracePeriod": "1h"}),
        claim(condition("InstanceTerminating")),
    ],
    ids=["grace", "annotation", "deletion", "ends without a deletion"],
)
def test_a_deadline_that_cannot_be_read_has_passed(odd: NodeClaim) -> None:
    found = disruption_of(odd, NOW)
    assert (found.deadline, found.begun) == (NOW, True)


@every_case(
    "odd",
    [
        claim(metadata={"deletionTimestamp": DELETED, "creationTimestamp": None}),
        claim(
            metadata={"deletionTimestamp": DELETED, "creationTimestamp": "?"},
            spec={"expireAfter": "1h"},
        ),
        deleted(status={"conditions": None}),
        deleted(status={"conditions": ["?", {"status": "True"}]}),
        deleted(condition("DisruptionReason", "Unknown", "Drifted")),
        deleted(spec={"expireAfter": "a month"}),
    ],
    ids=["no creation", "odd creation", "no conditions", "odd conditions", "unknown", "odd expiry"],
)
def test_a_deleted_claim_that_is_not_readable_goes_for_no_known_reason(odd: NodeClaim) -> None:
    assert reason_of(odd) is Reason.UNTOLD
    assert not odd.serves


def test_do_not_disrupt_keeps_nothing_that_has_begun_and_is_told() -> None:
    found = disruption_of(deleted(annotations={DO_NOT_DISRUPT: "true"}), NOW)
    assert found.sentence == (
        "Karpenter ends NodeClaim broker-a-7xkqz, karpenter.sh/do-not-disrupt or not: nothing says "
        "why: a person, or a warning that Karpenter alone has heard. Its drain has no deadline."
    )


def test_a_node_without_conditions_is_no_capacity() -> None:
    assert not claim(status={"conditions": []}).serves
    assert not claim(condition("Initialized", "Unknown")).serves


def test_what_karpenter_launches_in_the_zone_is_named_and_why_it_cannot() -> None:
    unlaunched = claim(
        status={"conditions": [condition("Launched", "Unknown", "AwaitingReconciliation")]}
    )
    waiting = claim(status={"conditions": [condition("Launched")], "nodeName": ""})
    refused = condition("Launched", "Unknown", "LaunchFailed", "no capacity in us-east-1a.")
    failing = claim(status={"conditions": [refused]})
    where = ("us-east-1a", "broker")
    assert coming([claim(), waiting], *where) == "NodeClaim broker-a-7xkqz is not initialized yet"
    assert coming([failing], *where) == (
        "Karpenter cannot launch NodeClaim broker-a-7xkqz: no capacity in us-east-1a"
    )
    assert coming([unlaunched], *where) == "NodeClaim broker-a-7xkqz is not initialized yet"
    assert coming([claim(), deleted()], *where) is None
    assert coming([waiting], "us-east-1b", "broker") is None
    assert coming([waiting], "us-east-1a", "controller") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(metadata=_JSON, spec=_JSON, status=_JSON, deletion=_JSON, grace=_JSON)
def test_no_claim_whatever_it_says_raises_or_serves_while_it_is_deleted(
    metadata: object, spec: object, status: object, deletion: object, grace: object
) -> None:
    whole = claim_in({"metadata": metadata, "spec": spec, "status": status}, POOLS)
    disruption_of(whole, NOW)
    odd = claim_in(
        {"metadata": {"deletionTimestamp": deletion}, "spec": {"terminationGracePeriod": grace}},
        POOLS,
    )
    assert odd.serves is False
    assert (disruption_of(odd, NOW) is None) == (deletion is None)
