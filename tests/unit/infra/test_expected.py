"""core.checks.expected and the harness: what the program makes is what is looked for."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from core.checks import facts
from core.checks.expected import expectation_of
from core.checks.facts import TargetGroup
from core.cluster import parse
from core.cluster.operated import operated_cluster
from core.ground import naming
from core.model.nodes import ZONE_TAG, LifecycleHook, ScalingGroup
from infra.alerts.alarms import names
from tests.unit.infra.programs import (
    BROKER,
    CONTROLLER,
    ZONES,
    description,
    run_changed,
    run_layers,
    spec,
)
from tests.unit.infra.recording import Recorded, Resource, run_program
from tests.unit.infra.variants import VARIANTS, recorded

# Every figure another than its default, so that none agrees by chance.
RAW = description(
    pools=[
        CONTROLLER,
        {**BROKER, "spare_nodes_per_zone": 2},
        {**BROKER, "name": "edges", "first_node_id": 100, "zones": [ZONES[2], ZONES[0]]},
    ],
    timings={
        "hook_heartbeat_timeout_seconds": 1200,
        "nlb_health_interval_seconds": 6,
        "nlb_health_timeout_seconds": 4,
        "nlb_healthy_threshold": 3,
        "nlb_idle_timeout_seconds": 360,
        "nlb_deregistration_seconds": 45,
        "nth_drain_timeout_seconds": 440,
        "nth_visibility_timeout_seconds": 100,
        "nth_max_receive_count": 50,
        "nth_queue_retention_seconds": 4_000,
        "queue_visibility_timeout_seconds": 400,
        "events_queue_retention_seconds": 300_000,
    },
)
SPEC = parse(RAW)
EXPECTED = expectation_of(SPEC, names(operated_cluster(SPEC))).snapshot


@pytest.fixture(scope="module")
def made(cache: Any) -> dict[str, Recorded]:
    return run_layers(RAW)


def group(resource: Resource) -> ScalingGroup:
    inputs = resource.inputs
    tags = {tag["key"]: tag["value"] for tag in inputs["tags"]}
    policy = inputs["instanceMaintenancePolicy"]
    (subnet,) = inputs["vpcZoneIdentifiers"]
    zones = {zone for zone in SPEC.availability_zones if zone in subnet}
    return ScalingGroup(
        name=inputs["name"],
        minimum=inputs["minSize"],
        maximum=inputs["maxSize"],
        zones=frozenset(zones),
        tags={ZONE_TAG: tags[ZONE_TAG]},
        on_abandon=inputs["instanceLifecyclePolicy"]["retentionTriggers"]["terminateHookAbandon"],
        healthy_percent=(policy["minHealthyPercentage"], policy["maxHealthyPercentage"]),
        suspended=frozenset(inputs["suspendedProcesses"]),
    )


def test_groups_and_hooks_are_made_as_they_are_expected(made: Mapping[str, Recorded]) -> None:
    groups = made["kafka"].of("autoscaling/group:Group")
    assert {each.inputs["name"]: group(each) for each in groups} == EXPECTED.groups
    hooks = {
        facts.hook_of(h.inputs["name"], h.inputs["autoscalingGroupName"]): LifecycleHook(
            name=h.inputs["name"],
            transition=h.inputs["lifecycleTransition"],
            default_result=h.inputs["defaultResult"],
            heartbeat_seconds=h.inputs["heartbeatTimeout"],
        )
        for h in made["operations"].of("autoscaling/lifecycleHook:LifecycleHook")
    }
    assert hooks == EXPECTED.hooks


def target_group(inputs: Mapping[str, Any]) -> TargetGroup:
    check, health = inputs["healthCheck"], inputs["targetGroupHealth"]
    return TargetGroup(
        name=inputs["name"],
        interval_seconds=check["interval"],
        timeout_seconds=check["timeout"],
        healthy_threshold=check["healthyThreshold"],
        unhealthy_threshold=check["unhealthyThreshold"],
        deregistration_seconds=inputs["deregistrationDelay"],
        connection_termination=str(inputs["connectionTermination"]).lower(),
        cross_zone=inputs["loadBalancingCrossZoneEnabled"],
        dns_failover=health["dnsFailover"]["minimumHealthyTargetsCount"],
    )


def test_the_way_clients_take_is_made_as_it_is_expected(made: Mapping[str, Recorded]) -> None:
    kafka = made["kafka"]
    groups = kafka.of("lb/targetGroup:TargetGroup")
    assert {g.inputs["name"]: target_group(g.inputs) for g in groups} == EXPECTED.target_groups

    def named(arn: str) -> str:
        return arn.rpartition(":")[2]

    listeners = {
        str(each.inputs["port"]): facts.BalancerListener(
            target_group=named(each.inputs["defaultActions"][0]["targetGroupArn"]),
            idle_timeout_seconds=each.inputs["tcpIdleTimeoutSeconds"],
        )
        for each in kafka.of("lb/listener:Listener")
    }
    assert listeners == EXPECTED.listeners
    bindings = {
        each.inputs["metadata"]["name"]: facts.Binding(
            target_group=named(each.inputs["spec"]["targetGroupARN"]),
            service=each.inputs["spec"]["serviceRef"]["name"],
            port=each.inputs["spec"]["serviceRef"]["port"],
            target_type=each.inputs["spec"]["targetType"],
        )
        for each in kafka.of("elbv2.k8s.aws/v1beta1:TargetGroupBinding")
    }
    assert bindings == EXPECTED.bindings
    (balancer,) = kafka.of("lb/loadBalancer:LoadBalancer")
    assert {balancer.inputs["name"]} == set(EXPECTED.balancers or {})


def queues(made: Mapping[str, Recorded]) -> dict[str, facts.Queue]:
    found = {}
    for layer in made.values():
        for each in layer.of("sqs/queue:Queue"):
            redrive = json.loads(each.inputs.get("redrivePolicy") or "{}")
            name = each.inputs["name"]
            found[name] = facts.Queue(
                retention_seconds=each.inputs["messageRetentionSeconds"],
                visibility_seconds=each.inputs.get("visibilityTimeoutSeconds"),
                dead_letters=naming.dead_letter_queue(name) if redrive else None,
                max_receive_count=redrive.get("maxReceiveCount"),
            )
    return found


def test_queues_are_made_as_they_are_expected(made: Mapping[str, Recorded]) -> None:
    assert queues(made) == EXPECTED.queues
    of_operations = set(queues({"operations": made["operations"]}))
    assert of_operations == expectation_of(SPEC, []).queues_of_functions


def test_queues_come_and_go_with_what_reads_them(cache: Any) -> None:
    expected = expectation_of(parse(VARIANTS["karpenter"]), []).snapshot.queues
    assert queues(recorded("karpenter")) == expected
    # Only its operations know of Slack.
    mute = queues({**run_layers(), "operations": run_changed("operations", slack=None)})
    assert mute == expectation_of(spec(slack=None), []).snapshot.queues


def test_the_namespace_and_the_drain_are_as_expected(made: Mapping[str, Recorded]) -> None:
    namespaces = {
        each.inputs["metadata"]["name"]: facts.Namespace(
            gate_label=each.inputs["metadata"]["labels"][naming.READINESS_GATE_LABEL]
        )
        for each in made["kafka"].of("core/v1:Namespace")
    }
    assert namespaces == EXPECTED.namespaces
    chart = made["platform"].one("helm.sh/v3:Release", "nth-release").inputs["values"]
    (handler,) = (EXPECTED.termination_handlers or {}).values()
    assert handler.drain_timeout_seconds == chart["nodeTerminationGracePeriod"]
    assert handler.grace_seconds == chart["terminationGracePeriodSeconds"]


def test_alarms_are_made_as_they_are_expected(made: Mapping[str, Recorded]) -> None:
    alarms = made["operations"].of("cloudwatch/metricAlarm:MetricAlarm")
    found = {a.inputs["name"]: facts.Alarm(acts=bool(a.inputs["alarmActions"])) for a in alarms}
    assert found == EXPECTED.alarms


def test_a_cluster_without_alarms_misses_none() -> None:
    quiet = spec(alerts={"enabled": False})
    assert expectation_of(quiet, names(operated_cluster(quiet))).snapshot.alarms is None


@pytest.mark.parametrize("read", [True, False])
def test_what_an_apply_raises_reaches_the_test_whoever_reads_the_resource(read: bool) -> None:
    def fail(_: str) -> str:
        raise pulumi.RunError("a late sentence")

    def program() -> None:
        queue = aws.sqs.Queue("queue", name=aws.kms.Key("key").arn.apply(fail))
        if read:
            pulumi.export("url", queue.url)

    with pytest.raises(pulumi.RunError, match="a late sentence"):
        run_program(program)
