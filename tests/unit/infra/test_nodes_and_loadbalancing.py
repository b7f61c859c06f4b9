"""infra.nodes and loadbalancing: a group per pool and zone, and one way in per broker id."""

from typing import Any

import pytest

from core.cluster import routes
from core.ground import naming
from infra.kafka.cluster import bootstrap_servers
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, run_changed, spec
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.variants import recorded

BINDING = "elbv2.k8s.aws/v1beta1:TargetGroupBinding"
GROUP, LISTENER, BALANCER = (
    "lb/targetGroup:TargetGroup",
    "lb/listener:Listener",
    "lb/loadBalancer:LoadBalancer",
)
BROKER_A = "balancing-us-east-1a-broker-10"


@pytest.fixture
def kafka(layers: dict[str, Recorded]) -> Recorded:
    return layers["kafka"]


@pytest.fixture(scope="module")
def shared(cache: None) -> Recorded:
    """The kafka layer of a cluster with everything about the balancer configured."""
    return run_changed(
        "kafka",
        kafka={"listener": {"advertised_host": "kafka.orders.internal"}},
        load_balancer={
            "client_cidrs": ["192.168.0.0/16"],
            "endpoint_principals": ["arn:aws:iam::111122223333:root"],
            "private_zone": "orders.internal",
        },
        pools=[CONTROLLER, {**BROKER, "spare_nodes_per_zone": 1}],
    )


def test_listeners_have_the_ports_that_brokers_advertise(kafka: Recorded) -> None:
    ports = {listener.inputs["port"] for listener in kafka.of(LISTENER)}
    assert ports == {9094, 10010, 10020, 10030}
    assert {int(server.rpartition(":")[2]) for server in bootstrap_servers(spec())} <= ports


def test_a_binding_leaves_nothing_for_a_webhook_to_fill_in(kafka: Recorded) -> None:
    for binding in kafka.of(BINDING):
        given = binding.inputs["spec"]
        assert given["targetType"] == "ip"
        assert given["ipAddressType"] == "ipv4"
        assert given["targetGroupProtocol"] == "TCP"
        assert given["vpcID"]
        # With networking rules the controller would write security groups.
        assert "networking" not in given


def test_a_group_is_bound_only_once_a_listener_uses_it(kafka: Recorded) -> None:
    binding = kafka.one(BINDING, f"{BROKER_A}-binding")
    assert f"{BROKER_A}-listener" in binding.depends_on


def test_kafka_waits_for_the_bindings_and_the_label(kafka: Recorded) -> None:
    (namespace,) = kafka.of("core/v1:Namespace")
    assert namespace.inputs["metadata"]["labels"][naming.READINESS_GATE_LABEL] == "enabled"
    assert {b.name for b in kafka.of(BINDING)} <= kafka.one("kafka.strimzi.io/v1:Kafka").depends_on
    assert all(namespace.name in binding.depends_on for binding in kafka.of(BINDING))


def test_health_is_asked_as_often_as_aws_allows_and_a_gone_broker_keeps_nothing(
    kafka: Recorded,
) -> None:
    for group in kafka.of(GROUP):
        check, bootstrap = group.inputs["healthCheck"], "bootstrap" in group.name
        assert (check["protocol"], check["interval"], check["healthyThreshold"]) == ("TCP", 5, 2)
        assert group.inputs["preserveClientIp"] == "false"
        assert group.inputs["deregistrationDelay"] == 30
        # Only the bootstrap may take a zone out of the name.
        failover = group.inputs["targetGroupHealth"]["dnsFailover"]
        assert failover["minimumHealthyTargetsCount"] == ("1" if bootstrap else "off")


def test_the_balancer_is_internal_and_stands_in_every_zone_of_the_brokers(kafka: Recorded) -> None:
    balancer = kafka.one(BALANCER).inputs
    assert (balancer["internal"], balancer["loadBalancerType"]) == (True, "network")
    assert len(balancer["subnets"]) == len(ZONES)
    assert balancer["securityGroups"] == ["balancing-group-id"]


def rules(recorded: Recorded, group: str) -> set[tuple[int, int, str]]:
    """Return (first port, last port, source) of a security group's ingress rules."""
    found: set[tuple[int, int, str]] = set()
    for rule in recorded.of("vpc/securityGroupIngressRule:SecurityGroupIngressRule"):
        given: dict[str, Any] = rule.inputs
        if given["securityGroupId"] == group:
            source = given.get("cidrIpv4") or given["referencedSecurityGroupId"]
            found.add((given["fromPort"], given["toPort"], source))
    return found


def test_clients_come_from_the_vpc_and_brokers_hear_the_balancer_alone(kafka: Recorded) -> None:
    expected = {(9094, 9094, "10.40.0.0/16"), (10010, 10039, "10.40.0.0/16")}
    assert rules(kafka, "balancing-group-id") == expected
    assert rules(kafka, "sg-cluster") == {(9094, 9094, "balancing-group-id")}


def test_nobody_comes_by_privatelink_unless_named(kafka: Recorded, shared: Recorded) -> None:
    service = "ec2/vpcEndpointService:VpcEndpointService"
    assert not kafka.of(service)
    assert shared.one(service).inputs["allowedPrincipals"] == ["arn:aws:iam::111122223333:root"]


def test_other_networks_are_let_in_when_named(shared: Recorded) -> None:
    assert (9094, 9094, "192.168.0.0/16") in rules(shared, "balancing-group-id")


def test_brokers_names_lead_to_the_balancer_privately(kafka: Recorded, shared: Recorded) -> None:
    assert not kafka.of("route53/zone:Zone")
    zone = shared.one("route53/zone:Zone").inputs
    assert (zone["name"], len(zone["vpcs"])) == ("orders.internal", 1)
    record = shared.one("route53/record:Record").inputs
    assert (record["name"], record["type"]) == ("kafka.orders.internal", "A")
    assert record["aliases"][0]["evaluateTargetHealth"] is True


def test_brokers_to_come_have_their_way_in_already(shared: Recorded) -> None:
    bindings = {binding.inputs["metadata"]["name"] for binding in shared.of(BINDING)}
    assert {"orders-broker-11", "orders-broker-21", "orders-broker-31"} <= bindings


def test_controllers_have_none() -> None:
    assert {route.node_id for route in routes(spec())} == {None, 10, 20, 30}


def test_clients_of_every_block_of_an_existing_vpc_reach_the_balancer(cache: None) -> None:
    layers = recorded("in a VPC that exists")
    rules = layers["kafka"].of("vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    admitted = {r.inputs.get("cidrIpv4") for r in rules} - {None}
    assert admitted == {"10.40.0.0/16", "100.64.0.0/16"}


@pytest.fixture
def values(layers: dict[str, Recorded]) -> dict[str, Any]:
    return dict(layers["platform"].one("helm.sh/v3:Release", "lbc-release").inputs["values"])


def test_the_controller_asks_often_gates_brokers_and_stands_in_nobody_elses_way(
    values: dict[str, Any],
) -> None:
    timings = spec().timings
    told = {
        # As often as the spec says, and never the metadata service.
        "targetgroupbindingRequeueDuration": f"{timings.lbc_requeue_seconds}s",
        "targetgroupbindingMaxExponentialBackoffDelay": f"{timings.lbc_max_backoff_seconds}s",
        "region": "us-east-1",
        "vpcId": "network-vpc-id",
        # Never controllers.
        "objectSelector": {"matchLabels": {"strimzi.io/broker-role": "true"}},
        "enableServiceMutatorWebhook": False,
        "watchNamespace": "kafka",
        "keepTLSSecret": True,
    }
    assert {key: values[key] for key in told} == told
    assert not any(values["controllerConfig"]["featureGates"].values())
    # Set, it would also apply to a webhook that fails closed.
    assert "webhookNamespaceSelectors" not in values


def test_it_moves_targets_of_this_cluster_alone(layers: dict[str, Recorded]) -> None:
    policy = layers["platform"].one("iam/rolePolicy:RolePolicy", "lbc-policy")
    (moving,) = [s for s in policy.policy_statements if s["Resource"] != ["*"]]
    expected = ["elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:RegisterTargets"]
    assert moving["Action"] == expected
    assert moving["Condition"]["StringEquals"] == {
        "aws:ResourceTag/stillwater:cluster": "orders",
        "aws:ResourceTag/stillwater:environment": "test",
    }
    (resource,) = moving["Resource"]
    assert resource.endswith(":targetgroup/test-orders-*/*")


SCALING_GROUP = "autoscaling/group:Group"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


@pytest.fixture
def groups(layers: dict[str, Recorded]) -> list[Resource]:
    return layers["kafka"].of(SCALING_GROUP)


GROWING = {
    "desiredCapacity": 1,
    "minSize": 1,
    "maxSize": 2,
    "instanceMaintenancePolicy": {"minHealthyPercentage": 100, "maxHealthyPercentage": 200},
    "instanceLifecyclePolicy": {"retentionTriggers": {"terminateHookAbandon": "retain"}},
    "suspendedProcesses": ["AZRebalance"],
}


def test_replacers_may_raise_desired_and_no_update_refreshes(groups: list[Resource]) -> None:
    for group in groups:
        # Each node may stand beside its replacement, and an abandoned termination keeps it.
        assert {key: group.inputs[key] for key in GROWING} == GROWING
        assert group.ignore_changes == ("desiredCapacity",)
        # No broker ever runs on spot.
        assert not {"instanceRefresh", "mixedInstancesPolicy"} & group.inputs.keys()


def test_a_group_has_the_tags_that_others_know_it_and_its_nodes_by(kafka: Recorded) -> None:
    tags = kafka.one(SCALING_GROUP, "nodes-us-east-1a-broker").inputs["tags"]
    autoscaler = "k8s.io/cluster-autoscaler"
    template = f"{autoscaler}/node-template"
    found = {each["key"]: each["value"] for each in tags if each["propagateAtLaunch"]}
    assert found == {
        "Name": "test-orders-broker-a",
        naming.managed_tag("test-orders"): "true",
        "kubernetes.io/cluster/test-orders": "owned",
        "managed-by": "stillwater",
        "stillwater:cluster": "orders",
        "stillwater:environment": "test",
        "stillwater:pool": "broker",
    }
    assert {each["key"]: each["value"] for each in tags if each["key"] not in found} == {
        f"{autoscaler}/enabled": "true",
        f"{autoscaler}/test-orders": "owned",
        # An idle node of Kafka's is left alone.
        f"{template}/autoscaling-options/scaledownunneededtime": "8760h",
        f"{template}/autoscaling-options/scaledownunreadytime": "8760h",
        # Of an empty group it knows what a node will be.
        f"{template}/label/stillwater.dev/pool": "broker",
        f"{template}/label/topology.ebs.csi.aws.com/zone": "us-east-1a",
        f"{template}/label/topology.kubernetes.io/zone": "us-east-1a",
        f"{template}/taint/dedicated": "kafka:NoSchedule",
    }


@pytest.mark.parametrize("layer", ["foundation", "kafka"])
def test_templates_demand_imdsv2_and_encryption(layers: dict[str, Recorded], layer: str) -> None:
    for template in layers[layer].of(TEMPLATE):
        assert template.inputs["metadataOptions"]["httpTokens"] == "required"
        assert template.inputs["metadataOptions"]["httpPutResponseHopLimit"] == 1
        (root,) = template.inputs["blockDeviceMappings"]
        assert root["ebs"]["encrypted"] == "true"
        assert "instanceMarketOptions" not in template.inputs


def test_nodes_may_join_before_the_first_of_them_starts(layers: dict[str, Recorded]) -> None:
    kafka = layers["kafka"]
    entry = kafka.one("eks/accessEntry:AccessEntry")
    assert entry.inputs["type"] == "EC2_LINUX"
    for group in kafka.of(SCALING_GROUP):
        assert entry.name in group.depends_on


def test_groups_are_exported_by_node_pool(layers: dict[str, Recorded]) -> None:
    exported = layers["kafka"].outputs["auto_scaling_groups"]
    assert exported["broker-a"] == "test-orders-broker-a"
    assert len(exported) == 6
