"""Whose an instance is: by our tag, by its group's name, by what EKS and Karpenter write on it."""

from __future__ import annotations

from core.incidents.observation import GROUP_TAG, Ownership, cluster_ownership
from tests.every_case import every_case

THEIRS = Ownership(
    marks=({"eks:cluster-name": ("shop",), "eks:nodegroup-name": ("quorum", "brokers")},),
    scaling_groups=("kafka-a",),
)


@every_case(
    ("tags", "belongs"),
    [
        ({GROUP_TAG: "kafka-a"}, True),
        ({GROUP_TAG: "kafka-b"}, False),
        ({"eks:cluster-name": "shop", "eks:nodegroup-name": "brokers"}, True),
        ({"eks:cluster-name": "lab", "eks:nodegroup-name": "brokers"}, False),
        ({"eks:nodegroup-name": "brokers"}, False),
        ({}, False),
    ],
)
def test_all_tags_of_one_mark_or_the_groups_name_are_asked_for(
    tags: dict[str, str], belongs: bool
) -> None:
    assert THEIRS.owns(tags) is belongs


def test_our_own_are_known_by_a_key_whatever_its_value() -> None:
    assert cluster_ownership("prod-orders").owns({"aws-node-termination-handler/prod-orders": ""})
    assert not cluster_ownership("prod-orders").owns(
        {"aws-node-termination-handler/prod-orders-2": "true"}
    )
    assert cluster_ownership("x").lacking == "no tag aws-node-termination-handler/x"
