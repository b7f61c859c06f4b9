"""An account that takes the cluster, and what it is sabotaged with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.checks.new_cluster import QUOTAS
from core.model.account import (
    Account,
    AccountQuota,
    Concurrency,
    EncryptionKey,
    NeededNetwork,
    Needs,
    StandingVpc,
    Subnet,
    Zone,
)

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
NEEDS = Needs(
    prefix="prod-orders",
    region="us-east-1",
    zones=ZONES,
    instance_types={"r7g.xlarge": frozenset(ZONES), "m7i.large": frozenset(ZONES)},
    quotas=dict.fromkeys(QUOTAS, 3.0),
    reserved_concurrency=5,
    network=NeededNetwork(
        vpc="vpc-0a",
        blocks=("10.40.0.0/16",),
        services="172.20.0.0/16",
        subnets={"subnet-0a": ("us-east-1a", 40)},
        route_tables=("rtb-0a",),
        gateways=("s3",),
        interfaces=("ec2",),
        private_zone="orders.internal",
    ),
    kubernetes="1.35",
    addons={"coredns": "v1.13.2-eksbuild.31", "aws-ebs-csi-driver": "v1.66.0-eksbuild.1"},
    addon_configuration={"aws-ebs-csi-driver": {"node": {"enableMetrics": True}}},
    buckets=("prod-orders-billing-111122223333",),
    export="prod-orders-bill",
    slack_secret="orders/slack",
)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"node": {"$ref": "#/definitions/Node"}},
    "definitions": {
        "Node": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"enableMetrics": {"type": "boolean"}},
        }
    },
}
GOOD = Account(
    caller="arn:aws:sts::111122223333:assumed-role/deployer/ann",
    number="111122223333",
    region="us-east-1",
    region_status="opt-in-not-required",
    stands=False,
    zones={name: Zone(f"use1-az{number}") for name, number in zip(ZONES, (6, 1, 2), strict=True)},
    offerings={name: frozenset(ZONES) for name in NEEDS.instance_types},
    subnets={"subnet-0a": Subnet(zone="us-east-1a", vpc="vpc-0a", free_addresses=4000)},
    vpc=StandingVpc(blocks=frozenset({"10.40.0.0/16"})),
    quotas={key: AccountQuota(name, 10, 1) for key, name in QUOTAS.items()},
    concurrency=Concurrency(1000, 1000),
    kubernetes={"1.35": "STANDARD_SUPPORT", "1.34": "STANDARD_SUPPORT"},
    addons={addon: frozenset({version}) for addon, version in NEEDS.addons.items()},
    addon_schemas={"aws-ebs-csi-driver": SCHEMA},
    volumes_key=EncryptionKey(name="alias/aws/ebs"),
    taken={"roles": (), "buckets": (), "bill exports": ()},
    pending_secrets=(),
    denied={},
    bill="",
    slack="",
)


def changed_account(**changed: Any) -> Account:
    """Return the good account, changed: of a mapping only the keys that are given."""
    given = {
        key: {**getattr(GOOD, key), **value} if isinstance(value, dict) else value
        for key, value in changed.items()
    }
    return replace(GOOD, **given)
