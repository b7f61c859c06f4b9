"""The gate: a violation of each kind is refused, in AWS's words, and what is right is not.

A row's own two examples are its test, and a violation of each kind stands beside them. The twin's
provider asks the same gate, so what is refused here fails `up local` as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from local.refusals import afterwards, calls, cloudformation, gate, limits, table, together
from local.refusals.refusal import Refusal, Wanted
from tests.unit.local.seeded_refusals import SEEDED


@pytest.mark.parametrize(("token", "inputs", "code", "words"), SEEDED)
def test_a_violation_is_refused_in_awss_words(
    token: str, inputs: dict[str, Any], code: str, words: str
) -> None:
    found = gate.refusals(Wanted(token, "seeded", inputs))
    assert [f for f in found if f.code == code and words in f.message], found
    assert all("seeded" in refusal.sentence for refusal in found)


def test_every_limit_says_where_it_stands_written() -> None:
    sources = [each.source for each in limits.LIMITS]
    sources += [row["source"] for row in together.TABLE["most"]]
    sources += [each.source for added in afterwards.ADDITIONS.values() for each in added]
    assert all(source.startswith("https://") for source in sources)
    assert len(limits.LIMITS) > 40


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


@pytest.mark.parametrize(
    ("token", "key", "operation"),
    [
        ("iam/policy:Policy", "policy", "CreatePolicy"),
        ("iam/role:Role", "assumeRolePolicy", "CreateRole"),
        ("iam/rolePolicy:RolePolicy", "policy", "PutRolePolicy"),
    ],
)
def test_a_policy_is_refused_once_by_the_operation_that_stores_it(
    token: str, key: str, operation: str
) -> None:
    of_a_role = {"role": "r"} if operation == "PutRolePolicy" else {}
    inputs = {"name": "p", **of_a_role, key: '{"Version": "2012-10-17"}'}
    (found,) = gate.refusals(Wanted(f"aws:{token}", "p", inputs))
    assert (found.operation, found.at) == (operation, key)


ROWS = [
    pytest.param(
        row, id=f"{row['type']} {row.get('at') or row.get('needs') or row.get('forbids') or ''} {n}"
    )
    for n, row in enumerate(table.rows())
]


def example(row: Mapping[str, Any], told: Any) -> Wanted:
    """Return a resource that gives an example: a value at the row's path, or inputs."""
    for part in reversed(row["at"].split(".") if "at" in row else ()):
        told = [told] if part == "*" else {part: told}
    return Wanted(f"aws:{row['type']}", "seeded", told)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_refuses_its_example_with_its_code(row: Mapping[str, Any]) -> None:
    (found,) = table.refusals(row, example(row, row["refused"]))
    assert (found.operation, found.code) == (row["operation"], row["code"])
    assert not {"{value}", "{at}"} & {*found.message.split()}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_takes_its_other_example(row: Mapping[str, Any]) -> None:
    assert list(table.refusals(row, example(row, row["taken"]))) == []


@pytest.mark.parametrize(
    ("token", "inputs", "words"),
    [
        ("lambda/functionUrl:FunctionUrl", {"cors": {"allowMethods": ["NO"]}}, "enum value set"),
        ("sqs/queue:Queue", {"name": "q", "delaySeconds": 901}, "less than or equal to 900"),
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
    },
}


@pytest.mark.parametrize("token", DIFFERENT)
def test_what_the_schema_alone_refuses_is_taken(token: str) -> None:
    found = gate.refusals(Wanted(f"aws:{token}", "seeded", DIFFERENT[token]))
    assert [refusal.sentence for refusal in found] == []


@pytest.mark.parametrize("row", together.TABLE["once"], ids=lambda row: row["type"])
def test_what_there_is_once_is_refused_a_second_time(row: Mapping[str, Any]) -> None:
    one = Wanted(f"aws:{row['type']}", "one", {})
    for path in row["by"]:
        told: Any = "a"
        for part in reversed(path.split(".")):
            told = {part: told}
        one = replace(one, inputs={**one.inputs, **told})
    found = list(together.refusals([one, replace(one, name="another")]))
    assert (row["operation"], row["code"]) in {(each.operation, each.code) for each in found}
    assert row["operation"] not in {each.operation for each in together.refusals([one])}


@pytest.mark.parametrize("row", together.TABLE["most"], ids=lambda row: row["type"])
def test_one_more_than_a_parent_takes_is_refused(row: Mapping[str, Any]) -> None:
    one = Wanted(f"aws:{row['type']}", "one", {row["parent"]: "p"})
    full = [one] * row["most"]
    assert list(together.counts_on_one_parent(full)) == []
    (found,) = together.counts_on_one_parent([*full, replace(one, name="another")])
    assert (found.code, found.resource) == (row["code"], "another")
