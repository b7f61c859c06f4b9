"""The gate: a violation of each kind is refused, in AWS's words, and what is right is not.

One row per kind of limit. The twin's provider asks the same gate, so what is refused here fails
`up local` as well.
"""

from __future__ import annotations

from typing import Any

import pytest

from local.refusals import afterwards, calls, gate, limits, together
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
    sources = [each.source for each in (*limits.LIMITS, *together.COUNTED)]
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
