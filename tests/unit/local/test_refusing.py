"""The twin's AWS provider refuses what AWS refuses, before anything is made."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource, one_sentence
from local.refusals import changing
from local.refusals.refusal import Refused
from local.store import ResourceStore

# Kept in the provider's own store alone: nothing answers for AWS here.
ENTRY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ASSOCIATION = {
    "clusterName": "orders",
    "namespace": "kube-system",
    "serviceAccount": "ebs-csi-controller-sa",
    "roleArn": "arn:aws:iam::123456789012:role/ebs-csi",
}


@pytest.fixture
def provider(tmp_path: Path) -> AwsProvider:
    return AwsProvider(Aws(), ResourceStore(tmp_path))


EXPORT = {
    "export": {
        "name": "bill",
        "dataQueries": [
            {
                "queryStatement": "SELECT line_item_usage_type FROM COST_AND_USAGE_REPORT",
                "tableConfigurations": {"COST_AND_USAGE_REPORT": {"TIME_GRANULARITY": "HOURLY"}},
            }
        ],
    }
}


def resource(token: str, name: str = "seeded") -> Resource:
    return Resource(f"urn:pulumi:local-kafka::stillwater::{token}::{name}")


def test_up_local_is_refused_in_awss_words(provider: AwsProvider) -> None:
    with pytest.raises(Refused) as caught:
        provider.create(resource("aws:ec2/vpc:Vpc"), {"cidrBlock": "127.0.0.0/16"})
    assert one_sentence(caught.value).startswith(
        "AWS refused CreateVpc for seeded (InvalidVpc.Range): The CIDR '127.0.0.0/16' is invalid."
    )
    assert list(provider.store.everything()) == []


def test_what_exists_is_refused_a_second_time(provider: AwsProvider, tmp_path: Path) -> None:
    made = provider.gate
    made.judge(resource(ENTRY, "one"), ASSOCIATION)
    provider.store.put(ENTRY, "a-1", ASSOCIATION)
    later = AwsProvider(Aws(), ResourceStore(tmp_path))
    with pytest.raises(Refused, match="Association already exists"):
        later.gate.judge(resource(ENTRY, "another"), ASSOCIATION)


def test_a_resource_is_judged_while_others_are_made(
    provider: AwsProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.refusals.neighbours.refusals", lambda _: [])
    gate, over = provider.gate, threading.Event()

    def make() -> None:
        while not over.is_set():
            for number in range(300):
                gate.note_made(ENTRY, f"a-{number}", ASSOCIATION)
            for number in range(300):
                gate.note_gone(ENTRY, f"a-{number}")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    maker = threading.Thread(target=make)
    maker.start()
    try:
        for _ in range(300):
            gate.judge(resource(ENTRY), ASSOCIATION)
    finally:
        over.set()
        maker.join()
        sys.setswitchinterval(before)


def test_an_update_is_judged_beside_the_others_and_not_beside_itself(
    provider: AwsProvider,
) -> None:
    provider.store.put(ENTRY, "a-1", ASSOCIATION)
    provider.gate.judge(resource(ENTRY, "one"), ASSOCIATION, "a-1")


def test_an_update_is_refused_before_anything_changes(provider: AwsProvider) -> None:
    existing = Existing(resource("aws:sqs/queue:Queue"), "url", {"name": "q"}, {"name": "q"})
    with pytest.raises(Refused, match="VisibilityTimeout"):
        provider.update(existing, {"name": "q", "visibilityTimeoutSeconds": 90_000})


def test_what_aws_adds_by_itself_is_a_difference_unless_the_program_says_it(
    provider: AwsProvider,
) -> None:
    """As it stands after `up`: AWS's answer is what the next one compares with."""
    token = "aws:bcmdata/export:Export"
    settled = changing.as_answered(token, EXPORT, provider.aws.account)
    for inputs, replaced in ((EXPORT, ["export"]), (settled, [])):
        existing = Existing(resource(token), "arn", inputs, inputs)
        found = provider.diff(existing, inputs).changes
        assert [change.top for change in found if change.replaces] == replaced
        assert bool(found) == bool(replaced)


def test_a_name_drawn_from_a_prefix_is_no_conflict(provider: AwsProvider) -> None:
    queue = resource("aws:sqs/queue:Queue")
    checked = provider.check(queue, {}, {"namePrefix": "kafka-"})
    provider.gate.judge(queue, provider._without_drawn_prefix(queue, checked))
    both = {"name": "kafka", "namePrefix": "kafka-"}
    with pytest.raises(Refused, match="conflicts with"):
        provider.gate.judge(queue, provider._without_drawn_prefix(queue, both))
