"""core.rotation.rebalance: what comes next, and a plan as a person reads it."""

import json
from typing import Any

from core.cost import pricing
from core.ground.naming import REBALANCE_TEMPLATE_ANNOTATION
from core.rotation.rebalance import Rebalance, Step, disk_after, next_step, plan, read_rebalance
from tests.every_case import every_case

GIB = 1024**3


def resource(state: str | None, **status: Any) -> dict[str, Any]:
    held = [] if state is None else [{"type": state, "status": "True", "message": "no rack"}]
    return {"metadata": {"name": "orders-grow-11"}, "status": {"conditions": held, **status}}


@every_case(
    ("state", "rotating", "agreed", "step"),
    [
        ("absent", False, False, Step.CREATE),
        ("absent", True, True, Step.WAIT),
        (None, False, True, Step.WAIT),
        ("PendingProposal", False, True, Step.WAIT),
        ("ProposalReady", False, False, Step.WAIT),
        ("ProposalReady", False, True, Step.APPROVE),
        ("ProposalReady", True, True, Step.WAIT),
        ("Rebalancing", False, True, Step.WAIT),
        ("Rebalancing", True, True, Step.STOP),
        ("Stopped", True, True, Step.WAIT),
        ("Stopped", False, True, Step.REFRESH),
        ("Ready", True, False, Step.DONE),
        ("NotReady", False, True, Step.FAIL),
        ("AStateOfTomorrow", False, True, Step.WAIT),
    ],
)
def test_a_rebalance_and_a_rotation_never_go_on_together(
    state: str | None, *, rotating: bool, agreed: bool, step: Step
) -> None:
    found = None if state == "absent" else read_rebalance(resource(state))
    assert next_step(found, rotating=rotating, agreed=agreed) is step


def proposed(**spec: Any) -> Rebalance:
    result = {"dataToMoveMB": 90 * 1024, "numReplicaMovements": 40}
    item = resource("ProposalReady", optimizationResult=result)
    found = read_rebalance(
        item | {"spec": {"mode": "add-brokers", "brokers": [11, 21, 31], **spec}}
    )
    assert found is not None
    return found


def test_a_plan_names_brokers_bytes_hours_dollars_and_disks() -> None:
    throttled = proposed(replicationThrottle=50 * 1024**2)
    disks = {10: 40.0 * GIB, 11: 30.0 * GIB}, {10: 100.0 * GIB, 11: 100.0 * GIB}
    assert list(plan(throttled, pricing.book("us-east-1"), *disks)) == [
        "40 replicas with 90.0 GiB move onto brokers 11, 21, 31.",
        # 90 GiB / 3 brokers / 50 MiB/s
        "That takes about 10 min 14 s, with 50 MiB/s for each of them.",
        # 90 GiB x 0.01 on each side
        "Traffic between zones costs 1.80 USD at most.",
        "Afterwards broker 10 has the fullest disks, 40%.",
    ]


def test_what_a_plan_cannot_know_it_says_or_leaves_out() -> None:
    told = list(plan(proposed(mode="full", brokers=[]), pricing.PriceBook("mars-1", "The book")))
    assert told[0] == "40 replicas with 90.0 GiB move."
    assert told[1] == "No throttle is set: clients share the network and the disks with it."
    assert told[2].startswith("The cost between zones is unknown: The book has no price")
    assert len(told) == 3


def test_a_template_is_no_rebalance_and_a_failed_one_says_why() -> None:
    item = {"metadata": {"name": "t", "annotations": {REBALANCE_TEMPLATE_ANNOTATION: "true"}}}
    assert read_rebalance(item) is None
    found = read_rebalance(resource("NotReady"))
    assert found.sentence == "KafkaRebalance orders-grow-11: NotReady: no rack"
    assert found.is_open


def test_broker_loads_that_are_none_are_no_disks() -> None:
    load = {"10": {"diskUsedMB": {"before": 5.0, "after": 2.5}}}
    assert disk_after(json.dumps(load)) == {10: 2.5 * 1024**2}
    assert [disk_after(text) for text in ("", "[]", '{"a": 1}')] == [{}, {}, {}]
