"""infra.eks.launch: what an instance is told before it joins."""

from __future__ import annotations

import base64
import email
import json
from typing import Any

import pytest

from core.cluster.network import service_cidr
from core.ground.errors import InvalidInput
from infra.eks.launch import is_arm, managed_ami_type
from tests.every_case import every_case
from tests.unit.infra.programs import ZONES, spec
from tests.unit.infra.recording import CA, ENDPOINT, Recorded

TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


def node_config(encoded: str) -> dict[str, Any]:
    """Return the NodeConfig as nodeadm would find it."""
    message = email.message_from_bytes(base64.b64decode(encoded))
    parts = [part for part in message.walk() if not part.is_multipart()]
    assert [part.get_content_type() for part in parts] == ["application/node.eks.aws"]
    return dict(json.loads(parts[0].get_payload()))  # type: ignore[arg-type]


@pytest.fixture
def broker_config(layers: dict[str, Recorded]) -> dict[str, Any]:
    template = layers["kafka"].one(TEMPLATE, "nodes-us-east-1b-broker-template")
    return dict(node_config(template.inputs["userData"])["spec"])


def test_a_broker_node_joins_its_own_cluster(broker_config: dict[str, Any]) -> None:
    assert broker_config["cluster"] == {
        "name": "test-orders",
        "apiServerEndpoint": ENDPOINT,
        "certificateAuthority": CA,
        "cidr": "172.20.0.0/16",
    }


def test_a_broker_node_registers_with_its_pool_and_the_taint(broker_config: dict[str, Any]) -> None:
    assert broker_config["kubelet"]["flags"] == [
        "--node-labels=stillwater.dev/pool=broker",
        "--register-with-taints=dedicated=kafka:NoSchedule",
    ]


def test_the_kubelet_outlasts_the_grace_of_its_pods(broker_config: dict[str, Any]) -> None:
    config = broker_config["kubelet"]["config"]
    total, critical = (
        int(config[key].removesuffix("s"))
        for key in ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")
    )
    assert total - critical > spec().timings.pod_grace_seconds
    assert critical > 0


def test_every_pool_and_zone_has_a_template_of_its_own(layers: dict[str, Recorded]) -> None:
    names = {template.name for template in layers["kafka"].of(TEMPLATE)}
    assert names == {
        f"nodes-{zone}-{pool}-template" for zone in ZONES for pool in ("controller", "broker")
    }


@every_case(
    ("instance_type", "arm"),
    [
        ("m7g.large", True),
        ("c7gn.xlarge", True),
        ("r8gd.2xlarge", True),
        ("im4gn.large", True),
        ("a1.large", True),
        ("g5g.xlarge", True),
        ("g5.xlarge", False),
        ("m7i.large", False),
        ("r6id.xlarge", False),
    ],
)
def test_the_image_fits_the_processor(instance_type: str, arm: bool) -> None:
    assert is_arm(instance_type) is arm
    assert managed_ami_type(instance_type).startswith("AL2023_ARM" if arm else "AL2023_x86")


def test_the_image_is_the_recommended_one_of_the_clusters_version(
    layers: dict[str, Recorded],
) -> None:
    names = {args["name"] for token, args in layers["kafka"].invokes if "ssm" in token}
    assert names == {
        "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id"
    }


@pytest.mark.parametrize(
    ("vpc", "services"),
    [("10.40.0.0/16", "172.20.0.0/16"), ("172.20.0.0/18", "10.100.0.0/16")],
)
def test_service_addresses_never_overlap_the_vpc(vpc: str, services: str) -> None:
    assert service_cidr([vpc]) == services


def test_services_keep_away_from_every_block_of_the_vpc() -> None:
    assert service_cidr(["172.20.0.0/16", "10.100.0.0/16"]) == "192.168.0.0/16"
    with pytest.raises(InvalidInput, match=r"leave no room .* network\.secondary_cidrs"):
        service_cidr(["172.20.0.0/16", "10.100.0.0/16", "192.168.0.0/16", "172.31.0.0/16"])
