"""core.cluster.addresses: what a new account cannot hold yet is said before `up` stops at it."""

from __future__ import annotations

from typing import Any

import pytest

from core.cluster import parse
from core.cluster.addresses import beyond_what_accounts_begin_with

ZONES = [f"us-east-1{letter}" for letter in "abcdef"]
VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnet_ids": {zone: f"subnet-{n:017x}" for n, zone in enumerate(ZONES)},
}


def sentences(zones: int, gib: int = 500, memory_mib: int = 512, **network: Any) -> list[str]:
    found = parse(
        {
            "functions": {"memory_mib": memory_mib},
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ZONES[:zones],
            "pools": [
                {
                    "name": "controller",
                    "role": "controller",
                    "zones": ZONES[:3],
                    "instance_type": "r7g.large",
                    "nodes_per_zone": 1,
                    "first_node_id": 0,
                },
                {
                    "name": "broker",
                    "role": "broker",
                    "instance_type": "r7g.xlarge",
                    "nodes_per_zone": 1,
                    "first_node_id": 100,
                    "volumes": [{"size_gib": gib}],
                },
            ],
            **({"network": network} if network else {}),
        }
    )
    return list(beyond_what_accounts_begin_with(found))


@pytest.mark.parametrize(
    ("zones", "gib", "network", "words"),
    [
        (5, 500, {}, []),
        (6, 500, {}, ["6 Elastic IP addresses"]),
        (6, 500, {"existing": VPC}, []),
        (4, 16_000, {}, ["TiB of gp3 volumes"]),
    ],
    ids=["five zones", "six zones", "six zones of a VPC that exists", "large volumes"],
)
def test_a_cluster_beyond_a_new_accounts_quota_is_doubted(
    zones: int, gib: int, network: dict[str, Any], words: list[str]
) -> None:
    found = sentences(zones, gib, **network)
    assert [word in sentence for word, sentence in zip(words, found, strict=True)] == [True] * len(
        words
    )


@pytest.mark.parametrize(("memory_mib", "doubts"), [(3008, 0), (3009, 1)])
def test_more_memory_than_a_new_accounts_functions_have_is_doubted(
    memory_mib: int, doubts: int
) -> None:
    found = sentences(3, memory_mib=memory_mib)
    assert len(found) == doubts
    assert all("functions.memory_mib is 3009" in each for each in found)
