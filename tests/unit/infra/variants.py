"""Every shape of cluster the program can build, for what must hold in all of them."""

from collections.abc import Mapping
from typing import Any

from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, Layers, description, run_layers
from tests.unit.infra.recording import EXISTING_VPC

# Every optional part of a spec that does not exclude another one.
EVERYTHING: Mapping[str, Any] = {
    "tags": {"team": "streaming"},
    "pools": [CONTROLLER, {**BROKER, "spare_nodes_per_zone": 1}],
    "connect": {"image": "registry.example/connect:1", "config": {"offset.flush.interval.ms": 1}},
    "topics": [{"name": "orders", "config": {"retention.ms": 1000}}, {"name": "Orders_V1"}],
    "users": [
        {"name": "billing",
            "acls": [{"resource": "topic", "name": "orders", "operations": ["Read", "Describe"]},
                {"resource": "group", "prefix": True, "name": "b-", "operations": ["Read"]},
                {"resource": "cluster", "operations": ["IdempotentWrite"]}],
            "producer_bytes_per_s": 1_000_000}],
    "metrics": {"prometheus_operator": True, "allow": ["kafka_server_quota_.*"]},
    "network": {"interface_endpoints": True},
    "load_balancer": {"client_cidrs": ["10.99.0.0/16"],
        "endpoint_principals": ["arn:aws:iam::111122223333:root"],
        "private_zone": "stillwater.internal"},
    "snapshots": {"every_hours": 12, "kept": 3},
    "encryption_key": "arn:aws:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
}  # fmt: skip
TOKENS = {
    "authentication": "oauth",
    "oauth": {
        "valid_issuer_url": "https://id.example/realms/kafka",
        "jwks_url": "https://id.example/certs",
        "token_url": "https://id.example/token",
        "audience": "kafka",
    },
}
ANONYMOUS = {"authentication": "none", "anonymous_clients": True}
VARIANTS: Mapping[str, dict[str, Any]] = {
    "asg": description(),
    "karpenter": description(node_provisioner="karpenter",
        eviction_gate={"image": "registry.example/stillwater-gate:1.4"}),
    "certificates": description(**EVERYTHING),
    "passwords": description(**EVERYTHING,
        kafka={"rebalance": {}, "listener": {"authentication": "scram-sha-512"},
            "internal_listener": {"authentication": "scram-sha-512"}}),
    "tokens": description(users=EVERYTHING["users"],
        kafka={"listener": TOKENS, "internal_listener": TOKENS,
            "functions": {"secret_name": "platform-stillwater"}}),
    "nobody asked": description(topics=EVERYTHING["topics"],
        kafka={"listener": ANONYMOUS, "internal_listener": {**ANONYMOUS, "tls": False},
            "authorization": "none"}),
    "karpenter with everything": description(**EVERYTHING, node_provisioner="karpenter"),
    "combined": description(pools=[{**BROKER, "role": "combined"}], connect={"replicas": 1}),
    "direct": description(drain_route="direct", scale_in="release"),
    "without what is optional": description(
        cluster_autoscaler=False, snapshots=None, strimzi={"operator": "external"}),
    "in a VPC that exists": description(
        network={
            "existing": {"vpc_id": EXISTING_VPC,
                "private_subnet_ids": {z: f"subnet-0123456789abcdef{z[-1]}" for z in ZONES}},
            "secondary_cidrs": ["100.64.0.0/16"]}),
}  # fmt: skip

# What is destroyed again: what holds another must go before it.
EPHEMERAL: Mapping[str, dict[str, Any]] = {
    name: {**VARIANTS[name], "ephemeral": True}
    for name in ("certificates", "karpenter with everything")
}


def recorded(variant: str) -> Layers:
    """Return the layers of a shape with ids as AWS gives them: one recording for all who ask."""
    return run_layers(VARIANTS[variant], real_sizes=True)
