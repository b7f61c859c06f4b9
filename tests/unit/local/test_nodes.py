"""Nodes of the twin: what an instance registers, and what its user data asks of the kubelet."""

import pytest

from core.ground.errors import InvalidInput
from local.kubernetes.cloud import (
    NodeCapacity,
    NodeConfig,
    RunningInstance,
    Taint,
    parse,
)
from local.kubernetes.containers import back_off_seconds, exit_code
from local.kubernetes.kubelet import BOOT_SECONDS, boot_seconds
from local.kubernetes.node import node_object, reserved_cpu_millicores

INSTANCE = RunningInstance(
    instance_id="i-0abc",
    node_name="ip-10-11-0-4.ec2.internal",
    private_ip="10.11.0.4",
    zone="us-east-1a",
    subnet_cidr="10.11.0.0/18",
    type_name="m7g.large",
    type=NodeCapacity(vcpus=2, memory_mib=8192, architecture="arm64", max_pods=29),
    cluster="demo",
    node_group="system",
    config=NodeConfig(
        labels={"stillwater.dev/pool": "broker", "kubernetes.io/hostname": "mine"},
        taints=(Taint("dedicated", "kafka", "NoSchedule"),),
    ),
)


def test_a_nodes_own_name_and_group_are_not_for_user_data_to_choose() -> None:
    labels = node_object(INSTANCE, boot_id="b")["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "ip-10-11-0-4.ec2.internal"
    assert labels["eks.amazonaws.com/nodegroup"] == "system"


@pytest.mark.parametrize(("vcpus", "millicores"), [(1, 60), (2, 70), (4, 80), (8, 90)])
def test_the_systems_share_of_the_processor_is_that_of_ekss_image(
    vcpus: int, millicores: int
) -> None:
    assert reserved_cpu_millicores(vcpus) == millicores


def test_a_container_starts_again_at_once_and_then_ever_later() -> None:
    waits = [back_off_seconds(failures) for failures in range(1, 9)]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(("returncode", "code"), [(0, 0), (3, 3), (-15, 143), (-9, 137)])
def test_an_end_by_signal_is_told_as_a_container_runtime_tells_it(
    returncode: int, code: int
) -> None:
    assert exit_code(returncode) == code


def test_a_root_volume_in_place_costs_what_a_launch_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLWATER_BOOT_SECONDS", "20")
    assert boot_seconds(None, rebooted=False) == BOOT_SECONDS
    assert boot_seconds({"metadata": {}}, rebooted=True) == 20 + BOOT_SECONDS
    assert boot_seconds({"metadata": {}}, rebooted=False) == 0


PLAIN = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
  kubelet:
    config:
      shutdownGracePeriod: 1m30s
    flags:
      - --node-labels=stillwater.dev/pool=broker,tier=gold
      - --register-with-taints=dedicated=kafka:NoSchedule
      - --v=2
"""


def test_labels_taints_and_figures_come_from_the_node_config() -> None:
    assert parse(PLAIN) == NodeConfig(
        labels={"stillwater.dev/pool": "broker", "tier": "gold"},
        taints=(Taint("dedicated", "kafka", "NoSchedule"),),
        shutdown_grace_seconds=90.0,
    )


def test_multi_part_user_data_is_read_where_its_media_type_is_nodeadms() -> None:
    parts = [
        "MIME-Version: 1.0",
        'Content-Type: multipart/mixed; boundary="//"',
        "",
        "--//",
        "Content-Type: text/x-shellscript",
        "",
        "#!/bin/sh",
        "--//",
        "Content-Type: application/node.eks.aws",
        "",
        PLAIN,
        "--//--",
    ]
    assert parse("\n".join(parts)) == parse(PLAIN)


def test_a_later_node_config_adds_to_an_earlier_one() -> None:
    more = PLAIN.replace("tier=gold", "tier=silver")
    assert parse(PLAIN + "---\n" + more).labels["tier"] == "silver"


@pytest.mark.parametrize(
    "user_data",
    ["", "#!/bin/sh\necho hello\n", "apiVersion: v1\nkind: ConfigMap\n", "just words"],
    ids=["empty", "a shell script", "another object", "prose"],
)
def test_user_data_without_a_node_config_asks_for_nothing(user_data: str) -> None:
    assert parse(user_data) == NodeConfig()


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("tier=gold", "tier", "'tier'"),
        ("dedicated=kafka:NoSchedule", "dedicated=kafka", "'dedicated=kafka'"),
        ("dedicated=kafka:NoSchedule", "dedicated=kafka:Never", "'dedicated=kafka:Never'"),
        ("1m30s", "90 seconds", "'90 seconds'"),
        ("kind: NodeConfig", "kind: [", "not YAML"),
    ],
    ids=["a label", "no effect", "another effect", "a duration", "broken YAML"],
)
def test_what_nodeadm_would_refuse_is_one_sentence(before: str, after: str, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(PLAIN.replace(before, after))
    assert named in str(refused.value)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("duration", "seconds"), [("45s", 45.0), ("2m", 120.0), ("1h0m0.5s", 3600.5), ("0", 0.0)]
)
def test_a_duration_is_gos(duration: str, seconds: float) -> None:
    assert parse(PLAIN.replace("1m30s", f'"{duration}"')).shutdown_grace_seconds == seconds
