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
BOOTSTRAP = "balancing-bootstrap"
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


def test_brokers_and_bootstrap_have_listener_group_and_binding(kafka: Recorded) -> None:
    keys = [
        BOOTSTRAP,
        *(f"balancing-{z}-broker-{i}" for z, i in zip(ZONES, (10, 20, 30), strict=True)),
    ]
    for type_, part in ((GROUP, "targets"), (LISTENER, "listener"), (BINDING, "binding")):
        assert {r.name for r in kafka.of(type_)} == {f"{key}-{part}" for key in keys}


def test_listeners_have_the_ports_that_brokers_advertise(kafka: Recorded) -> None:
    ports = {listener.inputs["port"] for listener in kafka.of(LISTENER)}
    assert ports == {9094, 10010, 10020, 10030}
    assert {int(server.rpartition(":")[2]) for server in bootstrap_servers(spec())} <= ports


def test_a_listener_forwards_to_the_group_its_binding_fills(kafka: Recorded) -> None:
    group = kafka.one(GROUP, f"{BROKER_A}-targets").inputs["name"]
    (action,) = kafka.one(LISTENER, f"{BROKER_A}-listener").inputs["defaultActions"]
    binding = kafka.one(BINDING, f"{BROKER_A}-binding").inputs
    assert action["type"] == "forward"
    assert action["targetGroupArn"] == binding["spec"]["targetGroupARN"]
    assert action["targetGroupArn"].endswith(group)
    assert group == "test-orders-10"


def test_a_binding_names_the_service_and_port_that_strimzi_makes(kafka: Recorded) -> None:
    found = {
        binding.inputs["metadata"]["name"]: binding.inputs["spec"]["serviceRef"]
        for binding in kafka.of(BINDING)
    }
    assert found["orders-broker-20"] == {"name": "orders-broker-b-nlb-20", "port": "tcp-nlb"}
    assert found["orders-bootstrap"] == {"name": "orders-kafka-nlb-bootstrap", "port": "tcp-nlb"}


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


def test_health_is_asked_as_often_as_aws_allows(kafka: Recorded) -> None:
    for group in kafka.of(GROUP):
        check = group.inputs["healthCheck"]
        assert (check["protocol"], check["interval"], check["healthyThreshold"]) == ("TCP", 5, 2)
        assert check["timeout"] <= check["interval"]


def test_a_gone_broker_keeps_no_connection(kafka: Recorded) -> None:
    for group in kafka.of(GROUP):
        assert group.inputs["connectionTermination"] is True
        assert group.inputs["deregistrationDelay"] == 30
        assert group.inputs["preserveClientIp"] == "false"


def test_only_the_bootstrap_may_take_a_zone_out_of_the_name(kafka: Recorded) -> None:
    for group in kafka.of(GROUP):
        failover = group.inputs["targetGroupHealth"]["dnsFailover"]
        bootstrap = group.name == f"{BOOTSTRAP}-targets"
        assert failover["minimumHealthyTargetsCount"] == ("1" if bootstrap else "off")
        crosses = group.inputs["loadBalancingCrossZoneEnabled"]
        assert crosses == ("false" if bootstrap else "true")


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


def test_it_asks_for_target_health_as_often_as_the_spec_says(values: dict[str, Any]) -> None:
    timings = spec().timings
    requeue, cap = "RequeueDuration", "MaxExponentialBackoffDelay"
    assert values[f"targetgroupbinding{requeue}"] == f"{timings.lbc_requeue_seconds}s"
    assert values[f"targetgroupbinding{cap}"] == f"{timings.lbc_max_backoff_seconds}s"


def test_it_gates_brokers_and_never_controllers(values: dict[str, Any]) -> None:
    assert values["objectSelector"] == {"matchLabels": {"strimzi.io/broker-role": "true"}}
    # Set, it would also apply to a webhook that fails closed.
    assert "webhookNamespaceSelectors" not in values


def test_it_stands_in_nobody_elses_way(values: dict[str, Any]) -> None:
    assert values["enableServiceMutatorWebhook"] is False
    assert values["watchNamespace"] == "kafka"
    assert values["keepTLSSecret"] is True
    assert not any(values["controllerConfig"]["featureGates"].values())


def test_it_never_asks_the_metadata_service(values: dict[str, Any]) -> None:
    assert values["region"] == "us-east-1"
    assert values["vpcId"]


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


def test_target_groups_carry_the_tags_its_permission_asks_for(layers: dict[str, Recorded]) -> None:
    for group in layers["kafka"].of("lb/targetGroup:TargetGroup"):
        assert group.inputs["tags"]["stillwater:cluster"] == "orders"
        assert group.inputs["tags"]["stillwater:environment"] == "test"


def test_it_has_credentials_before_it_starts(layers: dict[str, Recorded]) -> None:
    platform = layers["platform"]
    release = platform.one("helm.sh/v3:Release", "lbc-release")
    association = platform.one(
        "eks/podIdentityAssociation:PodIdentityAssociation", "lbc-role-association"
    )
    assert {association.name, "lbc-policy"} <= release.depends_on
    assert association.inputs["namespace"] == release.inputs["namespace"]
    service_account = release.inputs["values"]["serviceAccount"]["name"]
    assert association.inputs["serviceAccount"] == service_account


SCALING_GROUP, HOOK = "autoscaling/group:Group", "autoscaling/lifecycleHook:LifecycleHook"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


@pytest.fixture
def groups(layers: dict[str, Recorded]) -> list[Resource]:
    return layers["kafka"].of(SCALING_GROUP)


def tags_of(group: Resource) -> dict[str, tuple[str, bool]]:
    return {t["key"]: (t["value"], t["propagateAtLaunch"]) for t in group.inputs["tags"]}


def test_each_pool_has_one_group_per_zone_on_one_subnet(groups: list[Resource]) -> None:
    places = {group.inputs["name"]: group.inputs["vpcZoneIdentifiers"] for group in groups}
    assert places == {
        naming.auto_scaling_group("test-orders", pool, zone): [f"subnet-network-{zone}-private"]
        for pool in ("controller", "broker")
        for zone in ZONES
    }


def test_every_node_may_stand_beside_its_replacement(groups: list[Resource]) -> None:
    for group in groups:
        wanted = group.inputs["desiredCapacity"]
        assert group.inputs["minSize"] == wanted
        assert group.inputs["maxSize"] == 2 * wanted
        expected = {"minHealthyPercentage": 100, "maxHealthyPercentage": 200}
        assert group.inputs["instanceMaintenancePolicy"] == expected


def test_an_abandoned_termination_keeps_the_instance(groups: list[Resource]) -> None:
    for group in groups:
        triggers = group.inputs["instanceLifecyclePolicy"]["retentionTriggers"]
        assert triggers == {"terminateHookAbandon": "retain"}


def test_two_hooks_hold_every_termination_and_give_up_by_abandoning(
    layers: dict[str, Recorded], groups: list[Resource]
) -> None:
    hooks = layers["operations"].of(HOOK)
    held = {(h.inputs["autoscalingGroupName"], h.inputs["name"]) for h in hooks}
    assert held == {(g.inputs["name"], hook) for g in groups for hook in ("drain", "gate")}
    assert {h.inputs["defaultResult"] for h in hooks} == {"ABANDON"}
    assert {h.inputs["lifecycleTransition"] for h in hooks} == {
        "autoscaling:EC2_INSTANCE_TERMINATING"
    }


def test_replacers_may_raise_desired_and_no_update_refreshes(groups: list[Resource]) -> None:
    for group in groups:
        assert group.ignore_changes == ("desiredCapacity",)
        assert "instanceRefresh" not in group.inputs


def test_instances_inherit_what_others_know_them_by(groups: list[Resource]) -> None:
    for group in groups:
        tags = tags_of(group)
        assert tags["kubernetes.io/cluster/test-orders"] == ("owned", True)
        assert tags[naming.managed_tag("test-orders")] == ("true", True)
        assert tags["stillwater:cluster"] == ("orders", True)
        assert tags["Name"] == (group.inputs["name"], True)


def test_an_empty_group_tells_the_autoscaler_its_zone_and_taint(groups: list[Resource]) -> None:
    template = "k8s.io/cluster-autoscaler/node-template"
    for group in groups:
        tags, zone = tags_of(group), group.inputs["vpcZoneIdentifiers"][0].split("-private")[0]
        zone = zone.removeprefix("subnet-network-")
        assert tags[f"{template}/label/topology.kubernetes.io/zone"] == (zone, False)
        assert tags[f"{template}/label/topology.ebs.csi.aws.com/zone"] == (zone, False)
        assert tags[f"{template}/taint/dedicated"] == ("kafka:NoSchedule", False)


def test_no_broker_ever_runs_on_spot(layers: dict[str, Recorded], groups: list[Resource]) -> None:
    for template in layers["kafka"].of(TEMPLATE):
        assert "instanceMarketOptions" not in template.inputs
    for group in groups:
        assert "mixedInstancesPolicy" not in group.inputs


@pytest.mark.parametrize("layer", ["foundation", "kafka"])
def test_templates_demand_imdsv2_and_encryption(layers: dict[str, Recorded], layer: str) -> None:
    for template in layers[layer].of(TEMPLATE):
        assert template.inputs["metadataOptions"]["httpTokens"] == "required"
        assert template.inputs["metadataOptions"]["httpPutResponseHopLimit"] == 1
        (root,) = template.inputs["blockDeviceMappings"]
        assert root["ebs"]["encrypted"] == "true"
        launched = {t["resourceType"] for t in template.inputs["tagSpecifications"]}
        assert launched == {"instance", "volume", "network-interface"}


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
