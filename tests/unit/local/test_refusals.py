"""The table of limits: each row refuses its one example, and takes its other.

The twin's provider asks the same gate, so what is refused here fails `up local` as well.
"""

import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource, one_sentence
from local.refusals import calls, changing, cloudformation, gate, neighbours, table
from local.refusals.refusal import LIMITS, Refusal, Refused, Wanted
from local.store import ResourceStore
from tests.every_case import every_case


def test_every_limit_says_where_it_stands_written() -> None:
    sources = [each.source for each in LIMITS]
    sources += [row["source"] for row in neighbours.TABLE["most"] + neighbours.TABLE["steps"]]
    assert all(source.startswith("https://") for source in sources)
    assert len(LIMITS) > 40
    assert all(each.startswith(("https://", "the source")) for each in neighbours.LIMITS.values())


def test_a_tag_of_a_group_is_put_whole_though_the_provider_tags_everything() -> None:
    tag = {"key": "owner", "value": "streaming", "propagateAtLaunch": True}
    inputs = {"autoscalingGroupName": "pool-a", "tag": tag, "tagsAll": {"stack": "prod"}}
    (made_by,) = calls.TYPES["aws:autoscaling/tag:Tag"].calls
    (put,) = made_by.parameters(Wanted("aws:autoscaling/tag:Tag", "t", inputs))["Tags"]
    assert (put["ResourceId"], put["Key"], put["PropagateAtLaunch"]) == ("pool-a", "owner", True)


def test_no_type_is_let_through_without_calls_or_a_reason() -> None:
    for token, made in calls.TYPES.items():
        assert made.calls, token
        assert all(reason for reason in made.apart.values()), token


def test_a_refusal_reads_as_aws_writes_it() -> None:
    refusal = Refusal("CreateQueue", "QueueAlreadyExists", "It exists.", resource="q")
    assert refusal.sentence == "AWS refused CreateQueue for q (QueueAlreadyExists): It exists."


def name_of(row: Mapping[str, Any]) -> str:
    return f"{row['type']} {row.get('at') or row.get('base') or ''} {row['refused']}"[:120]


def example(row: Mapping[str, Any], told: Any) -> Wanted:
    """Return a resource that gives an example: a value at the row's path, or inputs.

    A value such as x*65 stands for so many characters.
    """
    if isinstance(told, str) and re.fullmatch(r"\w\*\d+", told):
        told = told[0] * int(told[2:])
    alone = "at" in row and not {"base", "where", "distinct"} & row.keys()
    for part in reversed(row["at"].split(".") if alone else ()):
        told = [told] if part == "*" else {part: told}
    return Wanted(f"aws:{row['type']}", "seeded", told)


@every_case("row", table.rows(), ids=map(name_of, table.rows()))
def test_a_row_refuses_its_one_example_with_its_code(row: Mapping[str, Any]) -> None:
    found = list(table.refusals(row, example(row, row["refused"])))
    assert {(each.operation, each.code) for each in found} == {(row["operation"], row["code"])}
    assert not {"{value}", "{at}"} & {*found[0].message.split()}


@every_case("row", table.rows(), ids=map(name_of, table.rows()))
def test_a_row_takes_its_other_example(row: Mapping[str, Any]) -> None:
    assert list(table.refusals(row, example(row, row["taken"]))) == []


@pytest.mark.parametrize(
    ("token", "inputs", "words"),
    [
        ("lambda/functionUrl:FunctionUrl", {"cors": {"allowMethods": ["NO"]}}, "is not one of"),
        ("sqs/queue:Queue", {"name": "q", "delaySeconds": 901}, "greater than the maximum of 900"),
    ],
)
def test_the_schema_that_others_keep_refuses(
    token: str, inputs: Mapping[str, Any], words: str
) -> None:
    said = [each.message for each in cloudformation.refusals(Wanted(f"aws:{token}", "s", inputs))]
    assert any(words in each for each in said), said


# Where CloudFormation's schema and the API differ, the API is right.
DIFFERENT: Mapping[str, Mapping[str, Any]] = {
    "autoscaling/lifecycleHook:LifecycleHook": {
        "name": "drain",
        "autoscalingGroupName": "g",
        "lifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "notificationMetadata": "x" * 4000,
    }
}


@pytest.mark.parametrize("token", DIFFERENT)
def test_what_the_schema_alone_refuses_is_taken(token: str) -> None:
    found = gate.refusals(Wanted(f"aws:{token}", "seeded", DIFFERENT[token]))
    assert [refusal.sentence for refusal in found] == []


@every_case("row", neighbours.TABLE["once"], ids=lambda row: row["type"])
def test_what_there_is_once_is_refused_a_second_time(row: Mapping[str, Any]) -> None:
    given = {key: words[0] for key, words in row.get("where", {}).items()}
    one = Wanted(f"aws:{row['type']}", "one", given)
    for path in row["by"]:
        told: Any = "a"
        for part in reversed(path.split(".")):
            told = {part: told}
        one = replace(one, inputs={**one.inputs, **told})
    found = list(neighbours.refusals([one, replace(one, name="another")]))
    assert (row["operation"], row["code"]) in {(each.operation, each.code) for each in found}
    assert row["operation"] not in {each.operation for each in neighbours.refusals([one])}


@every_case("row", neighbours.TABLE["most"], ids=lambda row: row["type"])
def test_one_more_than_a_parent_takes_is_refused(row: Mapping[str, Any]) -> None:
    one = Wanted(f"aws:{row['type']}", "one", {row["parent"]: "p"})
    full = [one] * row["most"]
    assert list(neighbours.counts_on_one_parent(full)) == []
    (found,) = neighbours.counts_on_one_parent([*full, replace(one, name="another")])
    assert (found.code, found.resource) == (row["code"], "another")


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


def test_an_update_is_judged_beside_the_others_and_not_beside_itself(provider: AwsProvider) -> None:
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
