"""One fault of one cluster has one name and one sentence, whichever command finds it."""

from __future__ import annotations

from typing import Any

import pytest

from cli.survey.kafka import kafkas, topics
from core.checks import table
from core.checks.facts import ClusterFacts
from core.checks.finding import Finding
from core.checks.table import description_findings
from core.cluster import ClusterSpec, parse
from infra.kafka.cluster import kafka_spec
from tests.unit.infra.programs import description

RLMM = "rlmm.config.remote.log.metadata.topic"
BROKEN = {
    "one in sync": {"kafka": {"min_insync_replicas": 1}},
    "two replicas, one in sync": {
        "kafka": {"default_replication_factor": 2, "min_insync_replicas": 1}
    },
    "all in sync": {"kafka": {"min_insync_replicas": 3}},
    "a tier's metadata all in sync": {"kafka": {"config": {f"{RLMM}.replication.factor": 2}}},
    "unclean leaders": {"kafka": {"config": {"unclean.leader.election.enable": True}}},
    "an open listener": {
        "kafka": {
            "listener": {"authentication": "none", "anonymous_clients": True},
            "authorization": "none",
        }
    },
}


class OneKafka:
    """An API server that holds what the stacks write of a description's Kafka."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.item = {
            "metadata": {"name": spec.name, "namespace": spec.kubernetes.namespace},
            "spec": kafka_spec(spec),
        }

    def get(self, path: str, **_query: object) -> dict[str, Any]:
        if path.endswith("/kafkas"):
            return {"items": [self.item]}
        if path.endswith("kafka.strimzi.io"):
            version = {"groupVersion": "kafka.strimzi.io/v1", "version": "v1"}
            return {"preferredVersion": version, "versions": [version]}
        return {"items": []}


def live_findings(spec: ClusterSpec) -> set[Finding]:
    """Return what `survey` and `doctor` say of the Kafka that the stacks write."""
    api: Any = OneKafka(spec)
    facts = ClusterFacts(kafkas=kafkas(api, None), topics=topics(api, None), read_at=0)
    return set(table.findings(facts))


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_a_fault_is_the_same_of_a_description_and_of_what_it_becomes(said: dict[str, Any]) -> None:
    spec = parse(description(**said))
    of_kafka = {each for each in description_findings(spec)[0] if each.subject.startswith("Kafka ")}
    assert of_kafka
    assert live_findings(spec) == of_kafka


def test_a_whole_cluster_has_no_fault_anywhere() -> None:
    assert live_findings(parse(description())) == set()
