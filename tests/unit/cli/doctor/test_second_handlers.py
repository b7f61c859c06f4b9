"""The doctor and node termination handlers that somebody else has installed beside ours."""

from __future__ import annotations

from typing import Any

import pytest

from cli.doctor.examine import _answered
from core.checks.drift import findings
from core.checks.facts import Snapshot
from tests.unit.cli.doctor.test_cluster import EXPECTED, Lists, cluster, item, read

IMAGE = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.6"
QUEUES = "https://sqs.us-east-1.amazonaws.com/111122223333"
OURS = next(name for name in EXPECTED.snapshot.queues or {} if name.endswith("-nth"))
EVERYTHING = [{"operator": "Exists"}]


def handler(
    name: str, namespace: str = "ops", tolerations: Any = (), replicas: int = 1, **env: Any
) -> dict[str, Any]:
    variables = [
        {"name": key, **(value if isinstance(value, dict) else {"value": value})}
        for key, value in env.items()
    ]
    pod = {
        "containers": [{"name": name, "image": IMAGE, "env": variables}],
        "tolerations": list(tolerations),
    }
    return item(
        name,
        metadata={"namespace": namespace},
        spec={"template": {"spec": pod}, "replicas": replicas},
    )


def queued(queue: str, **given: Any) -> dict[str, Any]:
    env = {"ENABLE_SQS_TERMINATION_DRAINING": "true", "QUEUE_URL": f"{QUEUES}/{queue}"}
    return handler("drainer", **given, **env)


CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "in another namespace, on a queue of its own": (
        "deployments",
        queued("web-drains"),
        ["reads queue web-drains"],
    ),
    "by another chart, on our queue": (
        "deployments",
        queued(OURS, namespace="kube-system"),
        [f"reads our queue {OURS}"],
    ),
    "on every node, by the metadata": (
        "daemonsets",
        handler("nth-imds", tolerations=EVERYTHING),
        ["on Kafka's nodes, by the instance metadata"],
    ),
    "on Kafka's nodes by name": (
        "daemonsets",
        handler(
            "nth-imds",
            tolerations=[{"key": "dedicated", "value": "kafka", "effect": "NoSchedule"}],
        ),
        ["on Kafka's nodes, by the instance metadata"],
    ),
    "on other nodes alone": ("daemonsets", handler("nth-imds"), []),
    "scaled to none": ("deployments", queued("web-drains", replicas=0), []),
    "ours": (
        "deployments",
        {
            **queued(OURS),
            "metadata": {"name": "aws-node-termination-handler", "namespace": "kube-system"},
        },
        [],
    ),
}


@pytest.mark.parametrize(("kind", "found", "said"), CASES.values(), ids=CASES.keys())
def test_a_second_termination_handler_is_found_however_it_is_called(
    kind: str, found: dict[str, Any], said: list[str]
) -> None:
    parts, _ = read(**{kind: [found]})
    drifts = findings(EXPECTED, Snapshot(second_handlers=parts["second_handlers"]))
    assert [each.evidence for each in drifts] == [f"expected missing, found {s}" for s in said]
    assert all(each.subject.startswith("second node termination handler") for each in drifts)


def test_a_handler_whose_settings_stand_elsewhere_costs_no_other_part() -> None:
    source = {"valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}
    odd = handler("nth", ENABLE_SQS_TERMINATION_DRAINING=source)
    parts, reader = next(each for each in cluster().readers() if "second_handlers" in each[0])
    api: Any = Lists({"deployments": [odd]})
    found, why = _answered(lambda: reader(api))
    assert set(parts) - set(found) == {"second_handlers"}
    assert "is set from another object" in why


def test_every_part_that_a_reader_of_the_cluster_yields_is_asked_for() -> None:
    """A part that the spec's own snapshot lacks is one that this cluster does not have."""
    parts = [part for named, _ in cluster().readers() for part in named]
    assert [part for part in parts if getattr(EXPECTED.snapshot, part) is None] == []
