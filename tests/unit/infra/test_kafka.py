"""infra.kafka and Strimzi's release: pools pinned to their zones, and names Strimzi will derive."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from core.ground import naming
from infra.alerts.dashboards import cluster_values, dashboards, text
from infra.charts.strimzi import values
from infra.kafka.cluster import bootstrap_servers, budgets, kafka_spec, node_pool_spec
from infra.versions import STRIMZI_CHART_VERSION
from tests.unit.infra.programs import (
    BROKER,
    CONTROLLER,
    ZONES,
    description,
    run_changed,
    run_layers,
    spec,
)
from tests.unit.infra.recording import Recorded

STRIMZI = "kafka.strimzi.io/v1:"


@pytest.fixture
def pools(layers: dict[str, Recorded]) -> dict[str, dict[str, Any]]:
    """The KafkaNodePools by their name in the cluster."""
    found = layers["kafka"].of(f"{STRIMZI}KafkaNodePool")
    return {pool.inputs["metadata"]["name"]: pool.inputs for pool in found}


def test_a_pod_that_asks_for_its_node_is_refused_and_strimzis_ask_for_nothing(
    layers: dict[str, Recorded],
) -> None:
    kafka = layers["kafka"]
    labels = kafka.one("core/v1:Namespace", "kafka-namespace").inputs["metadata"]["labels"]
    modes = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit")}
    assert modes == {"enforce": "baseline", "audit": "restricted"}
    (chosen,) = values(spec())["extraEnvs"]
    assert chosen == {"name": "STRIMZI_POD_SECURITY_PROVIDER_CLASS", "value": "restricted"}


def test_a_pod_stays_in_its_zone_and_pool_and_shares_its_node_with_no_other(
    pools: dict[str, dict[str, Any]],
) -> None:
    for zone, pool in itertools.product(ZONES, ("broker", "controller")):
        place = {"topology.kubernetes.io/zone": zone, "stillwater.dev/pool": pool}
        expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in place.items()]
        kafkas = {"strimzi.io/cluster": "orders", "strimzi.io/name": "orders-kafka"}
        apart = {
            "labelSelector": {"matchLabels": kafkas},
            "topologyKey": "kubernetes.io/hostname",
        }
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        assert pools[naming.kafka_node_pool(pool, zone)]["spec"]["template"]["pod"] == {
            "affinity": {
                "nodeAffinity": {
                    required: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
                },
                "podAntiAffinity": {required: [apart]},
            },
            "tolerations": [
                {"key": "dedicated", "operator": "Equal", "value": "kafka", "effect": "NoSchedule"}
            ],
            # A pool's pod template replaces Kafka's whole; without this a broker would get 30 s.
            "terminationGracePeriodSeconds": spec().timings.pod_grace_seconds,
        }


def test_volumes_are_never_deleted_with_their_claim(pools: dict[str, dict[str, Any]]) -> None:
    for pool in pools.values():
        for volume in pool["spec"]["storage"]["volumes"]:
            assert (volume["deleteClaim"], volume["class"]) == (False, naming.STORAGE_CLASS)
    storage = pools["broker-a"]["spec"]["storage"]
    assert storage["type"] == "jbod"
    volumes = storage["volumes"]
    expected = [(0, "100Gi", "gp3-4000-250"), (1, "50Gi", "gp3-3000-125")]
    assert [(v["id"], v["size"], v["volumeAttributesClass"]) for v in volumes] == expected
    assert [v.get("kraftMetadata") for v in volumes] == ["shared", None]


@pytest.mark.parametrize(
    ("role", "roles"),
    [
        ("broker", ["broker"]),
        ("controller", ["controller"]),
        ("combined", ["controller", "broker"]),
    ],
)
def test_a_pools_role_is_strimzis(role: str, roles: list[str]) -> None:
    described = spec(pools=[CONTROLLER, BROKER, {**BROKER, "name": "x", "first_node_id": 90}])
    pool = described.pools[2].model_copy(update={"role": role})
    assert node_pool_spec(described, pool, ZONES[0])["roles"] == roles


def test_kafka_comes_after_its_pools_and_its_nodes(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"].one(f"{STRIMZI}Kafka")
    pools = {pool.name for pool in layers["kafka"].of(f"{STRIMZI}KafkaNodePool")}
    assert pools <= kafka.depends_on
    # The engine keeps a component's children after everything that the component comes after.
    component = next(r for r in layers["kafka"].resources if r.type.endswith(":infra:Kafka"))
    groups = {group.name for group in layers["kafka"].of("autoscaling/group:Group")}
    assert {"kafka-namespace", "strimzi-release", *groups} <= component.depends_on


def test_brokers_stop_while_controllers_answer_then_nodes_end(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    pools = kafka.of(f"{STRIMZI}KafkaNodePool")
    brokers = [pool for pool in pools if pool.inputs["spec"]["roles"] == ["broker"]]
    controllers = {pool.name for pool in pools} - {pool.name for pool in brokers}
    bindings = kafka.of("elbv2.k8s.aws/v1beta1:TargetGroupBinding")
    # What depends goes first: brokers, bindings, controllers, the namespace, the nodes.
    assert all(controllers | {b.name for b in bindings} <= pool.depends_on for pool in brokers)
    assert all(controllers <= binding.depends_on for binding in bindings)
    namespace = kafka.one("infra:KafkaNamespace")
    groups = {group.name for group in kafka.of("autoscaling/group:Group")}
    assert groups <= namespace.depends_on


def test_clients_are_told_an_address_per_broker_that_its_certificate_covers() -> None:
    _, listener = kafka_spec(spec())["kafka"]["listeners"]
    assert (listener["name"], listener["type"], listener["tls"]) == ("nlb", "cluster-ip", True)
    configuration = listener["configuration"]
    assert configuration["advertisedPortTemplate"] == "10000 + {nodeId}"
    assert configuration["advertisedHostTemplate"] in configuration["bootstrap"]["alternativeNames"]


def test_timeouts_and_durability_reach_kafka_and_the_user_has_the_last_word() -> None:
    described = spec(kafka={"config": {"min.insync.replicas": 1, "log.retention.hours": 24}})
    config = kafka_spec(described)["kafka"]["config"]
    assert config["broker.session.timeout.ms"] == 9000
    assert config["default.replication.factor"] == 3
    assert config["transaction.state.log.min.isr"] == 2
    assert config["share.coordinator.state.topic.replication.factor"] == 3
    assert config["share.coordinator.state.topic.min.isr"] == 2
    assert config["rlmm.config.remote.log.metadata.topic.replication.factor"] == 3
    assert config["replica.selector.class"].endswith(".RackAwareReplicaSelector")
    assert config["min.insync.replicas"] == 1
    assert config["log.retention.hours"] == 24


def test_cruise_control_knows_each_brokers_capacity_and_rebalances_by_the_template() -> None:
    assert "cruiseControl" not in kafka_spec(spec())
    described = kafka_spec(spec(kafka={"rebalance": {"automatic": True}}))
    control, config = described["cruiseControl"], described["kafka"]["config"]
    (brokers,) = control["brokerCapacity"]["overrides"]
    assert {10, 11, 20, 30} <= set(brokers["brokers"])
    # m7g.large or larger: gigabits of baseline, and never the burst.
    assert brokers["inboundNetwork"] == brokers["outboundNetwork"] != "0KiB/s"
    assert [each["mode"] for each in control["autoRebalance"]] == ["add-brokers", "remove-brokers"]
    assert {each["template"]["name"] for each in control["autoRebalance"]} == {
        "orders-rebalance-template"
    }
    assert config["cruise.control.metrics.topic.replication.factor"] == 3
    assert config["cruise.control.metrics.topic.min.insync.replicas"] == 2
    asked = kafka_spec(spec(kafka={"rebalance": {}}))
    assert "autoRebalance" not in asked["cruiseControl"]


@pytest.mark.parametrize("setting", ["replica.fetch.backoff.ms", "replica.fetch.wait.max.ms"])
def test_followers_ask_again_sooner_unless_the_user_says_otherwise(setting: str) -> None:
    assert kafka_spec(spec())["kafka"]["config"][setting] == 100
    described = spec(kafka={"config": {setting: 1000}})
    assert kafka_spec(described)["kafka"]["config"][setting] == 1000


def test_probes_are_the_descriptions_and_one_set_for_every_role() -> None:
    described = spec(kafka={"probes": {"readiness": {"timeout_seconds": 7}}})
    kafka = kafka_spec(described)["kafka"]
    assert kafka["readinessProbe"] == {
        "initialDelaySeconds": 15,
        "periodSeconds": 10,
        "timeoutSeconds": 7,
        "failureThreshold": 3,
    }
    # KafkaNodePool has no probes: strict validation would refuse them there.
    assert not {"readinessProbe", "livenessProbe"} & set(
        node_pool_spec(described, described.pools[1], ZONES[0])
    )


def test_an_operator_that_makes_budgets_is_told_a_number_of_pods() -> None:
    theirs = spec(strimzi={"disruption_budgets": "operator"})
    budget = kafka_spec(theirs)["kafka"]["template"]["podDisruptionBudget"]
    # A percentage lets nothing be evicted where the owner has no scale.
    assert budget == {"maxUnavailable": 1}
    assert values(theirs)["generatePodDisruptionBudget"] is True
    # Where they are ours, it makes none.
    assert "template" not in kafka_spec(spec())["kafka"]
    assert values(spec())["generatePodDisruptionBudget"] is False


@pytest.mark.parametrize(
    ("operator", "chosen", "ours"),
    [
        ("chart", None, True),
        ("external", None, False),
        ("external", "ours", True),
        ("chart", "operator", False),
    ],
)
def test_budgets_are_ours_where_it_is_said(operator: str, chosen: str | None, ours: bool) -> None:
    told = spec(strimzi={"operator": operator, "disruption_budgets": chosen})
    assert told.strimzi.own_budgets is ours


def test_two_budgets_divide_kafkas_pods_by_one_label(layers: dict[str, Recorded]) -> None:
    found = {
        budget.inputs["metadata"]["name"]: budget.inputs["spec"]
        for budget in layers["kafka"].of("policy/v1:PodDisruptionBudget")
    }
    mine = {
        "strimzi.io/cluster": "orders",
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": "orders-kafka",
    }
    label = {"key": "stillwater.dev/may-leave"}
    assert found["orders-staying"] == {
        # Three controllers and three brokers.
        "minAvailable": 5,
        "selector": {
            "matchLabels": mine,
            "matchExpressions": [{**label, "operator": "DoesNotExist"}],
        },
    }
    assert found["orders-leaving"] == {
        "minAvailable": 0,
        "selector": {"matchLabels": mine, "matchExpressions": [{**label, "operator": "Exists"}]},
    }


def test_the_budgets_are_there_before_the_first_pod(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    for pool in kafka.of(f"{STRIMZI}KafkaNodePool"):
        if "broker" in pool.name:
            assert "budgets-staying" in pool.depends_on
    assert "budgets-staying" in kafka.one(f"{STRIMZI}Kafka").depends_on


@pytest.mark.parametrize(("replicas", "least"), [(1, None), (3, 2)])
def test_connects_workers_have_a_budget_where_one_may_go(replicas: int, least: int | None) -> None:
    found = budgets(spec(connect={"replicas": replicas})).get("connect")
    assert (None if found is None else found["minAvailable"]) == least


def test_clients_inside_the_cluster_have_a_listener_of_their_own() -> None:
    internal, _ = kafka_spec(spec())["kafka"]["listeners"]
    assert internal == {
        "name": "internal",
        "port": 9093,
        "type": "internal",
        "tls": True,
        "authentication": {"type": "tls"},
    }


FOURTH = "us-east-1d"
RULE = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EDGES: Mapping[str, Any] = {
    **BROKER,
    "name": "edges",
    "first_node_id": 100,
    # In another order than availability_zones, which alone counts.
    "zones": [FOURTH, ZONES[0]],
}
GROWN: Mapping[str, Any] = {
    "availability_zones": [*ZONES, FOURTH],
    "pools": [{**CONTROLLER, "zones": ZONES}, BROKER, EDGES],
    "metrics": {"prometheus_operator": True},
}


@pytest.fixture(scope="module")
def pinned(cache: None) -> dict[str, Recorded]:
    return run_layers(description(**GROWN))


@pytest.fixture(scope="module")
def grouped(pinned: dict[str, Recorded]) -> Recorded:
    return pinned["kafka"]


@pytest.fixture(scope="module")
def launched(cache: None) -> Recorded:
    return run_layers(description(**GROWN, node_provisioner="karpenter"))["kafka"]


def test_its_node_pools_keep_the_ids_of_their_zones(grouped: Recorded) -> None:
    pools = [pool.inputs["metadata"] for pool in grouped.of("kafka.strimzi.io/v1:KafkaNodePool")]
    assert {p["name"]: p["annotations"]["strimzi.io/next-node-ids"] for p in pools} == {
        "controller-a": "[0]",
        "controller-b": "[1]",
        "controller-c": "[2]",
        "broker-a": "[10-19]",
        "broker-b": "[20-29]",
        "broker-c": "[30-39]",
        "broker-d": "[40-49]",
        "edges-a": "[100-109]",
        "edges-d": "[130-139]",
    }


def test_karpenter_launches_its_nodes_in_its_zones_alone(launched: Recorded) -> None:
    names = {pool.inputs["metadata"]["name"] for pool in launched.of("karpenter.sh/v1:NodePool")}
    assert {name for name in names if not name.startswith("broker")} == {
        *(f"controller-{letter}" for letter in "abc"),
        *(f"edges-{letter}" for letter in "ad"),
    }
    classes = launched.of("karpenter.k8s.aws/v1:EC2NodeClass")
    subnets = {
        each.inputs["metadata"]["name"]: [
            term["id"] for term in each.inputs["spec"]["subnetSelectorTerms"]
        ]
        for each in classes
    }
    assert len(subnets["controller"]) == len(ZONES)
    assert set(subnets["edges"]) == {
        subnet for subnet in subnets["broker"] if ZONES[0] in subnet or FOURTH in subnet
    }
    assert len(subnets["edges"]) == len(EDGES["zones"])


def test_clients_are_let_in_to_the_ports_of_its_ids(grouped: Recorded) -> None:
    rule = grouped.one(RULE, "balancing-edges-from-vpc")
    first = spec().kafka.listener.first_advertised_port
    assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == (first + 100, first + 139)


def test_the_functions_reach_the_last_of_its_ids(pinned: dict[str, Recorded]) -> None:
    first = spec().kafka.listener.first_advertised_port
    rules = [
        (rule.inputs["fromPort"], rule.inputs["toPort"])
        for layer in pinned.values()
        for rule in layer.resources
        if rule.name == "handlers-network-to-kafka"
    ]
    assert rules == [(first + 10, first + 139)]


def test_clients_start_from_one_broker_of_every_zone_a_pool_has() -> None:
    host, first = "kafka.stillwater.internal", spec().kafka.listener.first_advertised_port
    expected = [f"{host}:{first + node}" for node in (10, 20, 30, 40, 100, 130)]
    assert bootstrap_servers(spec(**GROWN)) == expected


def test_alerts_count_its_nodes_where_they_are() -> None:
    values = cluster_values(spec(**GROWN))
    assert (values["controllers"], values["brokers"]) == ("3", str(4 + 2))
    assert "controller-d" not in values["pods"] + values["claims"]
    assert "edges-b" not in values["pods"] + values["claims"]
    assert "broker-d" in values["claims"]


def test_costs_are_asked_for_where_its_nodes_are() -> None:
    cost = text(dashboards(spec(**GROWN))["cost"])
    assert "broker-d" in cost
    assert "edges-d" in cost
    assert "controller-d" not in cost
    assert "edges-b" not in cost


RELEASE = "helm.sh/v3:Release"


def test_it_watches_kafkas_namespace_alone_and_waits_as_long_as_a_gated_pod_takes() -> None:
    chosen = values(spec())
    assert chosen["watchNamespaces"] == ["kafka"]
    assert chosen["operationTimeoutMs"] == 600_000


def test_one_operator_may_go_while_another_stays() -> None:
    assert values(spec())["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    assert not values(spec(strimzi={"replicas": 1}))["podDisruptionBudget"]["enabled"]


def test_its_rights_need_the_namespace_first(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    component = next(r for r in kafka.resources if r.type.endswith(":infra:StrimziOperator"))
    assert "kafka-namespace" in component.depends_on
    release = kafka.one(RELEASE, "strimzi-release")
    assert release.inputs["version"] == STRIMZI_CHART_VERSION


def test_an_operator_that_is_already_there_is_left_alone(cache: None) -> None:
    layer = run_changed("kafka", strimzi={"operator": "external"})
    assert [r.name for r in layer.of(RELEASE) if "strimzi" in r.name] == []
