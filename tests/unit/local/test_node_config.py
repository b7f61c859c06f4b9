"""What user data decides about a node."""

import pytest

from core.ground.errors import InvalidInput
from local.kubernetes.cloud import NodeConfig, Taint, parse

PLAIN = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
  kubelet:
    config:
      maxPods: 20
      shutdownGracePeriod: 1m30s
      registerWithTaints:
        - {key: spare, effect: PreferNoSchedule}
    flags:
      - --node-labels=stillwater.dev/pool=broker,tier=gold
      - --register-with-taints=dedicated=kafka:NoSchedule
      - --v=2
"""


def test_labels_taints_and_figures_come_from_the_node_config() -> None:
    assert parse(PLAIN) == NodeConfig(
        labels={"stillwater.dev/pool": "broker", "tier": "gold"},
        taints=(Taint("dedicated", "kafka", "NoSchedule"), Taint("spare", "", "PreferNoSchedule")),
        max_pods=20,
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
    more = PLAIN.replace("tier=gold", "tier=silver").replace("maxPods: 20", "maxPods: 30")
    config = parse(PLAIN + "---\n" + more)
    assert config.labels["tier"] == "silver"
    assert config.max_pods == 30


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
