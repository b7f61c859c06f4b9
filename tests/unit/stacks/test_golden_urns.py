"""No resource is renamed or dropped by accident: the URNs of whole clusters, written down."""

from collections import Counter

import pytest

from tests.unit.infra.programs import run_layers
from tests.unit.stacks.golden_urns import COMMAND, clusters, golden, kept, lines, urns

WITH_EVERYTHING = "example-with-every-option"


@pytest.fixture(scope="module", params=clusters())
def named(request: pytest.FixtureRequest, cache: None) -> tuple[str, list[str]]:
    return request.param, lines(run_layers(clusters()[request.param]))


def test_no_resource_changes_its_urn_unnoticed(named: tuple[str, list[str]]) -> None:
    name = named[0]
    now, before = urns(named[1]), urns(golden(name))
    gone = "\n  ".join(sorted(set(before) - set(now)))
    assert not gone, (
        f"`pulumi up` would delete what it no longer finds under its URN:\n  {gone}\n"
        f"Keep the name and the parents, or give the resource an alias "
        f"(pulumi.ResourceOptions(aliases=...)); if it is meant to go, run `{COMMAND}`."
    )
    added = "\n  ".join(sorted(set(now) - set(before)))
    assert not added, f"New resources; if they are meant, run `{COMMAND}`:\n  {added}"


def test_no_urn_stands_for_two_resources(named: tuple[str, list[str]]) -> None:
    counted = Counter(urns(named[1]))
    assert [urn for urn, times in counted.items() if times > 1] == []


def test_what_is_protected_or_kept_stays_so(named: tuple[str, list[str]]) -> None:
    name, now = named
    loose = "\n  ".join(sorted(kept(golden(name)) - kept(now)))
    assert not loose, (
        f"Nothing keeps these from being deleted any more:\n  {loose}\nSee infra/tags.py; "
        f"if they hold nothing that could be lost, run `{COMMAND}`."
    )
    assert kept(now) <= kept(golden(name)), f"Newly protected; if meant, run `{COMMAND}`."


def test_the_lists_name_what_holds_data() -> None:
    every = {line.split("::", 2)[2].split("$")[-1] for line in kept(golden(WITH_EVERYTHING))}
    assert every >= {
        "aws:dynamodb/table:Table::ledger-table protected",
        "aws:eks/cluster:Cluster::cluster-control-plane protected",
        "aws:kms/key:Key::cluster-secrets protected",
        "aws:lb/loadBalancer:LoadBalancer::balancing-nlb protected",
        "aws:s3/bucket:Bucket::analytics-billing protected",
        "kubernetes:kafka.strimzi.io/v1:Kafka::kafka-kafka protected",
        "kubernetes:kafka.strimzi.io/v1:KafkaTopic::topics-topic-orders retained-on-delete",
        "kubernetes:storage.k8s.io/v1:StorageClass::storage-class protected",
    }
