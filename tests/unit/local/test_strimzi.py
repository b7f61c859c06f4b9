"""The twin's Strimzi stand-in, as far as it only computes: ids, configuration, objects, rolling."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidInput
from local.kafka.run import settings
from local.kubernetes import crds, strimzi_resources
from local.kubernetes.strimzi_config import server_config
from local.kubernetes.strimzi_model import Cluster, annotated_ids, evaluate, node_ids, read
from local.kubernetes.strimzi_rolling import is_ready, next_to_roll, start_order

NLB = "127.41.251.1"
KAFKA: dict[str, Any] = {
    "metadata": {"name": "coban", "namespace": "kafka", "uid": "uid-1"},
    "spec": {
        "kafka": {
            "version": "4.2.0",
            "metadataVersion": "4.2-IV1",
            "listeners": [
                {
                    "name": "nlb",
                    "port": 9094,
                    "type": "cluster-ip",
                    "tls": False,
                    "configuration": {
                        "advertisedHostTemplate": NLB,
                        "advertisedPortTemplate": "10000 + {nodeId}",
                    },
                }
            ],
            "rack": {"type": "topology-label", "topologyKey": "topology.kubernetes.io/zone"},
            "config": {"min.insync.replicas": 2, "auto.create.topics.enable": False},
        }
    },
}


def pool(name: str, role: str, *, replicas: int = 1, ids: str = "", zone: str = "a") -> Any:
    where = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"us-east-1{zone}"]}
    volume = {"id": 0, "type": "persistent-claim", "size": "1Gi", "class": "gp3-kafka"}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {"strimzi.io/next-node-ids": ids} if ids else {},
        },
        "spec": {
            "replicas": replicas,
            "roles": role.split("+"),
            "storage": {"type": "jbod", "volumes": [{**volume, "kraftMetadata": "shared"}]},
            "template": {
                "pod": {
                    "terminationGracePeriodSeconds": 330,
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [where]}]
                            }
                        }
                    },
                }
            },
        },
    }


POOLS = [
    pool("controller-a", "controller", ids="[0]"),
    pool("broker-a", "broker", ids="[10-19]"),
    pool("broker-b", "broker", ids="[20-29]", zone="b"),
]


def cluster(kafka: Any = KAFKA, pools: list[Any] = POOLS) -> Cluster:
    return read(kafka, pools, node_ids(pools), "cluster-id")


def configured(node_id: int, described: Cluster | None = None) -> dict[str, str]:
    described = described or cluster()
    node = next(n for n in described.nodes if n.node_id == node_id)
    return settings(server_config(described, node))


def rendered_pod(node_id: int, described: Cluster | None = None) -> dict[str, Any]:
    described = described or cluster()
    node = next(n for n in described.nodes if n.node_id == node_id)
    config = strimzi_resources.config_map(described, node)
    return strimzi_resources.pod(described, node, config)


# Node ids


@pytest.mark.parametrize(
    ("annotation", "ids"),
    [
        pytest.param("[10-12]", [10, 11, 12], id="range"),
        pytest.param("[0, 2, 10-11]", [0, 2, 10, 11], id="mixed"),
        pytest.param("[5]", [5], id="one"),
        pytest.param("", [], id="none"),
    ],
)
def test_an_annotation_names_ids(annotation: str, ids: list[int]) -> None:
    assert annotated_ids(annotation) == ids


def test_ids_come_from_the_annotation_then_the_lowest_free() -> None:
    assert node_ids([pool("a", "broker", replicas=3, ids="[10-11]"), pool("b", "broker")]) == {
        "a": [0, 10, 11],
        "b": [1],
    }


def test_a_node_keeps_its_id_when_the_annotation_changes() -> None:
    grown = pool("a", "broker", replicas=2, ids="[50-59]")
    grown["status"] = {"nodeIds": [10]}
    assert node_ids([grown]) == {"a": [10, 50]}


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sets(st.integers(0, 20), max_size=5), st.integers(0, 20)),
        min_size=1,
        max_size=4,
    )
)
def test_no_id_is_given_twice_and_every_pool_gets_its_number(
    drawn: list[tuple[int, set[int], int]],
) -> None:
    pools, taken = [], set[int]()
    for number, (replicas, known, first) in enumerate(drawn):
        one = pool(f"p{number}", "broker", replicas=replicas, ids=f"[{first}-{first + 2}]")
        one["status"] = {"nodeIds": sorted(known - taken)}
        taken |= known
        pools.append(one)
    given_ids = node_ids(pools)
    everything = [node_id for ids in given_ids.values() for node_id in ids]
    assert len(everything) == len(set(everything))
    assert [len(given_ids[f"p{n}"]) for n in range(len(drawn))] == [d[0] for d in drawn]


# Configuration


def test_a_broker_advertises_the_load_balancer_and_listens_at_its_pod() -> None:
    config = configured(10)
    assert config["advertised.listeners"].split(",") == [
        "REPLICATION-9091://coban-broker-a-10.coban-kafka-brokers.kafka.svc.cluster.local:9091",
        f"NLB-9094://{NLB}:10010",
    ]
    assert config["listeners"].split(",") == [
        "REPLICATION-9091://${POD_ADDRESS}:9091",
        "NLB-9094://${POD_ADDRESS}:9094",
    ]


def test_a_template_may_give_each_broker_a_name_of_its_own() -> None:
    kafka = copy.deepcopy(KAFKA)
    configuration = kafka["spec"]["kafka"]["listeners"][0]["configuration"]
    configuration["advertisedHostTemplate"] = "b-{nodeId}.example.internal"
    config = configured(20, cluster(kafka))
    assert "NLB-9094://b-20.example.internal:10020" in config["advertised.listeners"]


def test_a_controller_has_the_control_plane_and_no_client_listener() -> None:
    config = configured(0)
    assert config["process.roles"] == "controller"
    assert config["listeners"] == "CONTROLPLANE-9090://${POD_ADDRESS}:9090"
    assert "broker.rack" not in config
    assert "inter.broker.listener.name" not in config


def test_every_node_names_the_same_voters() -> None:
    host = "coban-controller-a-0.coban-kafka-brokers.kafka.svc.cluster.local"
    assert {configured(n)["controller.quorum.voters"] for n in (0, 10, 20)} == {f"0@{host}:9090"}


def test_without_a_rack_in_its_kafka_a_broker_has_none() -> None:
    kafka = copy.deepcopy(KAFKA)
    del kafka["spec"]["kafka"]["rack"]
    assert "broker.rack" not in configured(20, cluster(kafka))


def test_only_what_the_list_allows_is_exposed_and_nothing_without_one() -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["metricsConfig"] = {
        "type": "strimziMetricsReporter",
        "values": {"allowList": ["kafka_server_.*", "jvm_.*"]},
    }
    exposing = cluster(kafka)
    config = configured(10, exposing)
    assert config["prometheus.metrics.reporter.allowlist"] == "kafka_server_.*,jvm_.*"
    assert config["prometheus.metrics.reporter.listener"] == "http://${POD_ADDRESS}:9404"
    ports = rendered_pod(10, exposing)["spec"]["containers"][0]["ports"]
    assert {"name": "tcp-prometheus", "containerPort": 9404, "protocol": "TCP"} in ports
    assert "metric.reporters" not in configured(10)


def test_a_brokers_rack_is_looked_up_by_its_nodes_label() -> None:
    described = cluster()
    broker, controller = described.nodes[1], described.nodes[0]
    data = strimzi_resources.config_map(described, broker)["data"]
    assert data["rack.topology.key"] == "topology.kubernetes.io/zone"
    assert "rack.topology.key" not in strimzi_resources.config_map(described, controller)["data"]


def test_a_broker_knows_its_rack_and_keeps_its_log_in_a_subfolder() -> None:
    config = configured(20)
    assert config["broker.rack"] == "${STRIMZI_RACK_ID}"
    assert config["log.dirs"] == "/var/lib/kafka/data-0/kafka-log20"
    assert config["metadata.log.dir"] == "/var/lib/kafka/data-0/kafka-log20"


def test_the_users_settings_are_written_as_kafka_reads_them() -> None:
    config = configured(10)
    assert config["min.insync.replicas"] == "2"
    assert config["auto.create.topics.enable"] == "false"


def test_a_combined_node_has_both_sides() -> None:
    described = cluster(pools=[pool("both", "controller+broker", ids="[1]")])
    config = configured(1, described)
    assert config["process.roles"] == "broker,controller"
    assert config["listeners"].startswith("CONTROLPLANE-9090://${POD_ADDRESS}:9090,REPLICATION")


@pytest.mark.parametrize(
    ("template", "port"),
    [("10000 + {nodeId}", 10010), ("{nodeId} * 2 - 1", 19), ("9094", 9094)],
)
def test_port_templates_are_arithmetic(template: str, port: int) -> None:
    assert evaluate(template, 10) == port


@pytest.mark.parametrize("template", ["{nodeId} / 2", "__import__('os')", "1 +", "'a' * 9"])
def test_port_templates_are_nothing_but_arithmetic(template: str) -> None:
    with pytest.raises(InvalidInput, match="advertisedPortTemplate"):
        evaluate(template, 10)


@pytest.mark.parametrize(
    ("change", "pools", "says"),
    [
        pytest.param({"tls": True}, POOLS, "listener nlb asks for TLS", id="tls"),
        pytest.param({"type": "ingress"}, POOLS, "type ingress", id="listener-type"),
        pytest.param({}, POOLS[1:], "no node pool has the role controller", id="no-controller"),
        pytest.param({}, POOLS[:1], "no node pool has the role broker", id="no-broker"),
    ],
)
def test_what_it_cannot_run_is_one_sentence(
    change: dict[str, Any], pools: list[Any], says: str
) -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["listeners"][0] |= change
    with pytest.raises(InvalidInput) as caught:
        cluster(kafka, pools)
    (problem,) = caught.value.problems
    assert says in problem
    assert problem.endswith(".")


# Objects


def test_the_bootstrap_service_of_a_listener_finds_brokers_only() -> None:
    described = cluster()
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(described)}
    selector = services["coban-kafka-nlb-bootstrap"]["selector"].items()
    assert selector <= rendered_pod(10)["metadata"]["labels"].items()
    assert not selector <= rendered_pod(0)["metadata"]["labels"].items()
    assert services["coban-kafka-nlb-bootstrap"]["ports"][0]["targetPort"] == "tcp-nlb"


def test_a_brokers_service_finds_that_broker_alone() -> None:
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(cluster())}
    selector = services["coban-broker-a-nlb-10"]["selector"].items()
    assert selector <= rendered_pod(10)["metadata"]["labels"].items()
    assert not selector <= rendered_pod(20)["metadata"]["labels"].items()


def test_peers_resolve_each_other_before_they_are_ready() -> None:
    services = {s["metadata"]["name"]: s["spec"] for s in strimzi_resources.services(cluster())}
    headless = services["coban-kafka-brokers"]
    assert headless["clusterIP"] == "None"
    assert headless["publishNotReadyAddresses"]
    assert rendered_pod(10)["spec"]["subdomain"] == "coban-kafka-brokers"


def test_the_budget_is_an_integer_over_all_nodes() -> None:
    spec = strimzi_resources.budget(cluster())["spec"]
    assert spec["minAvailable"] == 2
    assert "maxUnavailable" not in spec


def test_a_pod_takes_its_pools_place_grace_and_volume() -> None:
    spec = rendered_pod(10)["spec"]
    assert spec["terminationGracePeriodSeconds"] == 330
    assert spec["affinity"] == POOLS[1]["spec"]["template"]["pod"]["affinity"]
    assert spec["tolerations"] == [{"key": "dedicated", "operator": "Exists"}]
    claim = spec["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == "data-0-coban-broker-a-10"


@pytest.mark.parametrize(("node_id", "port"), [(0, 9090), (10, 9091)])
def test_readiness_asks_the_port_of_the_nodes_role(node_id: int, port: int) -> None:
    container = rendered_pod(node_id)["spec"]["containers"][0]
    assert container["readinessProbe"]["tcpSocket"] == {"port": port}


def test_a_claim_outlives_its_cluster_unless_it_asks_not_to() -> None:
    described = cluster()
    broker = described.nodes[1]
    (kept,) = strimzi_resources.claims(described, broker)
    assert "ownerReferences" not in kept["metadata"]
    pools = copy.deepcopy(POOLS)
    pools[1]["spec"]["storage"]["volumes"][0] |= {
        "deleteClaim": True,
        "volumeAttributesClass": "fast",
    }
    described = cluster(pools=pools)
    (owned,) = strimzi_resources.claims(described, described.nodes[1])
    assert owned["metadata"]["ownerReferences"][0]["kind"] == "KafkaNodePool"
    assert owned["spec"]["volumeAttributesClassName"] == "fast"


def test_a_node_goes_with_its_pool_and_its_services_go_with_the_kafka() -> None:
    described = cluster()
    config = strimzi_resources.config_map(described, described.nodes[1])
    for rendered in (rendered_pod(10), config):
        (owner,) = rendered["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("KafkaNodePool", "uid-broker-a")
    for rendered in strimzi_resources.services(described):
        assert rendered["metadata"]["ownerReferences"][0]["kind"] == "Kafka"


def test_the_same_description_is_the_same_revision_and_a_setting_changes_it() -> None:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["config"]["min.insync.replicas"] = 1
    annotation = strimzi_resources.REVISION
    first, again, other = rendered_pod(10), rendered_pod(10), rendered_pod(10, cluster(kafka))
    revisions = [p["metadata"]["annotations"][annotation] for p in (first, again, other)]
    assert revisions[0] == revisions[1] != revisions[2]


# Rolling


def live(node_id: int, *, ready: bool = True, old: bool = False, going: bool = False) -> Any:
    pod = rendered_pod(node_id)
    if old:
        pod["metadata"]["annotations"][strimzi_resources.REVISION] = "old"
    if going:
        pod["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    pod["status"] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return pod


def rolled(**pods: Any) -> str | None:
    wanted = {name: rendered_pod(int(name[1:])) for name in pods}
    return next_to_roll(wanted, {name: pod for name, pod in pods.items() if pod is not None})


def test_controllers_start_before_brokers() -> None:
    assert [n.node_id for n in start_order(reversed(cluster().nodes))] == [0, 10, 20]


@pytest.mark.parametrize(
    ("pods", "next_pod"),
    [
        pytest.param({"n0": live(0), "n10": live(10)}, None, id="nothing-outdated"),
        pytest.param({"n0": live(0, old=True), "n10": live(10, old=True)}, "n0", id="first"),
        pytest.param(
            {"n0": live(0, old=True), "n10": live(10, old=True, ready=False)}, "n10", id="unready"
        ),
        pytest.param(
            {"n0": live(0, old=True), "n10": live(10, ready=False)}, None, id="wait-ready"
        ),
        pytest.param({"n0": live(0, old=True), "n10": live(10, going=True)}, None, id="wait-going"),
        pytest.param({"n0": live(0, old=True), "n10": None}, None, id="wait-missing"),
    ],
)
def test_one_outdated_pod_restarts_while_all_others_are_ready(
    pods: dict[str, Any], next_pod: str | None
) -> None:
    assert rolled(**pods) == next_pod


def test_a_pod_that_is_going_is_not_ready() -> None:
    assert is_ready(live(10))
    assert not is_ready(live(10, going=True))
    assert not is_ready({"metadata": {}})


# Definitions


def test_the_twins_own_definitions_serve_strimzis_kinds() -> None:
    names = {definition["metadata"]["name"] for definition in crds.own()}
    plurals = ("kafkas", "kafkanodepools", "kafkaconnects", "kafkatopics", "kafkausers")
    assert names == {f"{plural}.kafka.strimzi.io" for plural in plurals}


def test_real_definitions_are_read_from_a_folder(tmp_path: Any) -> None:
    (tmp_path / "a.yaml").write_text("kind: ClusterRole\n---\nkind: CustomResourceDefinition\n")
    assert [d["kind"] for d in crds.real(tmp_path)] == ["CustomResourceDefinition"]


@pytest.mark.parametrize(
    ("content", "says"),
    [("kind: Role\n", "holds no YAML file"), ("a: [", "not readable YAML")],
)
def test_a_folder_without_definitions_is_one_sentence(
    tmp_path: Any, content: str, says: str
) -> None:
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(InvalidInput, match=says):
        crds.real(tmp_path)
