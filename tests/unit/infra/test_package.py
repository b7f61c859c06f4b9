"""The components for programs in any language: what they refuse, make and operate."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

from core.cluster.operation import Timings
from core.ground.constants import ABANDON, HOOKS
from core.ground.errors import InvalidInput
from core.ground.naming import ENVIRONMENT_TAG
from core.settings.facts import Volume, parse
from infra.package.broker_nodes import BrokerNodes, Hooks
from infra.package.host import COMPONENTS, Package, schema
from infra.package.operations import EvictionGate, Operations
from infra.package.report import BillExport, Report
from spark.jobs import scheduled
from stacks.program import main
from tests.every_case import every_case
from tests.unit.infra.recording import ACCOUNT, CA, ENDPOINT, REGION, Recorded, run_program

HOOKS_ARGS: dict[str, Any] = {
    "scaling_groups": {"a": "their-a", "b": "their-b"},
    "cluster": "shop-orders",
    "heartbeat_timeout_seconds": 900.0,
}
BAD_KEYS = (
    "scalingGroups has the key 'a b'; keys are letters, digits, '.', '_' and '-'.\n"
    "scalingGroups.c is 1.0; it must be a name."
)
TOO_LATE = (
    "prefix is another resource's output; it decides what is made, so write the value itself."
)
BILL_ARGS: dict[str, Any] = {"prefix": "shop"}
NODES_ARGS: dict[str, Any] = {
    "cluster": "shop-orders",
    "eks_cluster": "shop",
    "endpoint": "https://eks.example",
    "certificate_authority": "Y2E=",
    "service_cidr": "172.20.0.0/16",
    "subnet_ids": {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    "security_group_ids": ["sg-shop"],
    "instance_type": "r7g.xlarge",
    "image_id": "ami-shop",
}
REPORT_ARGS: dict[str, Any] = {
    "cluster": "shop-orders",
    "bill": "s3://shop-billing/export/shop-bill",
    "zones": 3.0,
    "pools": {
        "broker": {"instance_type": "r7g.xlarge", "nodes": 6.0,
            "volumes": [{"size_gib": 500.0, "iops": 4000.0}]},
        "controller": {"instance_type": "m7g.large", "nodes": 3.0, "volumes": [{"size_gib": 20.0}],
            "controllers": True}},
}  # fmt: skip
GROUP, TEMPLATE = "autoscaling/group:Group", "ec2/launchTemplate:LaunchTemplate"


def made(kind: Any, args: Mapping[str, Any]) -> Recorded:
    return run_program(lambda: kind("part", args, None))


def refusal(kind: Any, args: Mapping[str, Any]) -> str:
    with pytest.raises(InvalidInput) as refused:
        made(kind, args)
    return str(refused.value)


def test_hooks_stand_below_their_groups_keys() -> None:
    recorded = made(Hooks, HOOKS_ARGS)
    found = recorded.of("autoscaling/lifecycleHook:LifecycleHook")
    assert {each.name for each in found} == {f"part-{key}-{hook}" for key in "ab" for hook in HOOKS}
    assert {each.inputs["defaultResult"] for each in found} == {ABANDON}
    assert {each.inputs["heartbeatTimeout"] for each in found} == {900}


def test_a_groups_name_may_be_known_late() -> None:
    def program() -> None:
        late = pulumi.Output.from_input("made-beside")
        Hooks("part", {**HOOKS_ARGS, "scaling_groups": {"a": late}})

    found = run_program(program).of("autoscaling/lifecycleHook:LifecycleHook")
    assert {each.inputs["autoscalingGroupName"] for each in found} == {"made-beside"}


def test_a_bill_export_has_a_private_bucket_of_its_own() -> None:
    recorded = made(BillExport, BILL_ARGS)
    (bucket,) = recorded.of("s3/bucket:Bucket")
    assert bucket.inputs["bucket"] == f"shop-billing-{ACCOUNT}"
    (export,) = recorded.of("bcmdata/export:Export")
    (destination,) = export.inputs["export"]["destinationConfigurations"]
    assert destination["s3Destinations"][0]["s3Region"] == REGION
    (policy,) = recorded.of("s3/bucketPolicy:BucketPolicy")
    assert {each["Sid"] for each in policy.policy_statements} == {"OnlyOverTls", "DataExports"}


def test_broker_nodes_are_a_group_and_a_template_for_each_zone() -> None:
    recorded = made(BrokerNodes, NODES_ARGS)
    groups = {each.name: each.inputs for each in recorded.of(GROUP)}
    expected = {"part-us-east-1a-broker": ["subnet-a"], "part-us-east-1b-broker": ["subnet-b"]}
    assert {name: each["vpcZoneIdentifiers"] for name, each in groups.items()} == expected
    assert {each["name"] for each in groups.values()} == {
        "shop-orders-broker-a",
        "shop-orders-broker-b",
    }
    assert {(each["minSize"], each["maxSize"]) for each in groups.values()} == {(1, 2)}
    templates = [each.inputs for each in recorded.of(TEMPLATE)]
    assert {each["imageId"] for each in templates} == {"ami-shop"}
    assert {tuple(each["vpcSecurityGroupIds"]) for each in templates} == {("sg-shop",)}
    told = [base64.b64decode(each["userData"]).decode() for each in templates]
    grace = f'"shutdownGracePeriod": "{Timings().node_shutdown_seconds}s"'
    for part in ('"name": "shop"', '"cidr": "172.20.0.0/16"', "stillwater.dev/pool=broker", grace):
        assert all(part in each for each in told)
    (entry,) = recorded.of("eks/accessEntry:AccessEntry")
    assert entry.inputs["clusterName"] == "shop"


def test_hooks_on_the_groups_find_their_tag_as_they_write_it() -> None:
    (group, _) = made(BrokerNodes, {**NODES_ARGS, "tags": {"team": "orders"}}).of(GROUP)
    tags = {
        each["key"]: (each["value"], each["propagateAtLaunch"]) for each in group.inputs["tags"]
    }
    (tag, _) = made(Hooks, HOOKS_ARGS).of("autoscaling/tag:Tag")
    written = tag.inputs["tag"]
    assert tags[written["key"]] == (written["value"], written["propagateAtLaunch"])
    assert tags["team"] == ("orders", True)
    assert ENVIRONMENT_TAG not in tags


def test_a_next_pool_takes_the_instance_profile_of_the_first() -> None:
    args = {
        **NODES_ARGS,
        "pool": "controller",
        "nodes_per_zone": 2.0,
        "instance_profile_arn": "arn:aws:iam::1:instance-profile/theirs",
    }
    recorded = made(BrokerNodes, args)
    assert recorded.of("iam/role:Role") == []
    profiles = {each.inputs["iamInstanceProfile"]["arn"] for each in recorded.of(TEMPLATE)}
    assert profiles == {args["instance_profile_arn"]}
    sizes = {(g.inputs["minSize"], g.inputs["maxSize"]) for g in recorded.of(GROUP)}
    assert sizes == {(2, 4)}


def test_a_report_starts_every_morning_with_the_facts_that_it_was_given() -> None:
    recorded = made(Report, {**REPORT_ARGS, "cluster_tag": "team=streaming", "pool_tag": "pool"})
    start = json.loads(recorded.one("scheduler/schedule:Schedule").inputs["target"]["input"])
    told = start["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
    known = scheduled.parser().parse_args(told)
    assert (known.bill, known.cluster) == ("s3://shop-billing/export/shop-bill", "shop-orders")
    assert (known.cluster_tag, known.pool_tag) == ("team=streaming", "pool")
    assert "--history" not in told
    (written,) = [
        each.inputs["content"]
        for each in recorded.of("s3/bucketObjectv2:BucketObjectv2")
        if each.inputs["key"] == "facts/cluster.json"
    ]
    facts = parse(written.encode(), "facts")
    assert [(pool.name, pool.nodes) for pool in facts.brokers] == [("broker", 6)]
    assert facts.brokers[0].volumes == (Volume(500, 4000, 125),)
    assert (facts.zones, facts.replication_factor, facts.retention_seconds) == (3, 3, 604800)
    statements = recorded.one("iam/rolePolicy:RolePolicy", "part-policy").policy_statements
    assert "ReadIncidents" not in {each["Sid"] for each in statements}


def test_a_report_reads_the_incidents_that_are_filed() -> None:
    recorded = made(Report, {**REPORT_ARGS, "incidents_bucket": "shop-incidents"})
    start = json.loads(recorded.one("scheduler/schedule:Schedule").inputs["target"]["input"])
    told = start["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
    assert told[told.index("--history") + 1].startswith("s3://shop-incidents/")
    statements = recorded.one("iam/rolePolicy:RolePolicy", "part-policy").policy_statements
    assert "ReadIncidents" in {each["Sid"] for each in statements}


@every_case(
    ("kind", "args", "sentence"),
    [
        (Hooks, {**HOOKS_ARGS, "heartbeat_timeout_seconds": 29.0},
            "heartbeatTimeoutSeconds is 29; it must be a whole number from 30 to 7200."),
        (Hooks, {**HOOKS_ARGS, "heartbeat_timeout_seconds": 900.5},
            "heartbeatTimeoutSeconds is 900.5; it must be a whole number from 30 to 7200."),
        (Hooks, {**HOOKS_ARGS, "heartbeat_timeout_seconds": True},
            "heartbeatTimeoutSeconds is True; it must be a whole number from 30 to 7200."),
        (Hooks, {**HOOKS_ARGS, "cluster": "shop orders"},
            "cluster is 'shop orders'; it must be like shop-orders."),
        (Hooks, {**HOOKS_ARGS, "scaling_groups": {}},
            "scalingGroups is {}; it must have at least one entry, like {a: a-name}."),
        (Hooks, {**HOOKS_ARGS, "scaling_groups": {"a b": "x", "c": 1.0}}, BAD_KEYS),
        (BrokerNodes, {**NODES_ARGS, "subnet_ids": {"a": "subnet-a"}},
            "subnetIds has the key 'a'; keys are availability zones like us-east-1a."),
        (BrokerNodes, {**NODES_ARGS, "security_group_ids": []},
            "securityGroupIds is []; it must have at least one entry."),
        (BrokerNodes, {**NODES_ARGS, "security_group_ids": ["sg-shop", 5.0]},
            "securityGroupIds[1] is 5.0; it must be a name."),
        (BrokerNodes, {**NODES_ARGS, "nodes_per_zone": 0.0},
            "nodesPerZone is 0; it must be a whole number from 1 to 100."),
        (BrokerNodes, {**NODES_ARGS, "tags": {"team": 5.0}},
            "tags is {'team': 5.0}; it must be texts by name."),
        (BrokerNodes, {**NODES_ARGS, "tags": {"aws:team": "orders"}},
            "tag aws:team belongs to AWS, Kubernetes or this project; choose another key."),
        (
            Report,
            {**REPORT_ARGS, "tags": {"team": "Köln"}},
            (
                "tags has 'team' with 'ö' in its value, and EMR Serverless, where reports run, "
                "takes ASCII letters, digits, spaces and + - = . _ : / @ alone; replace it."
            ),
        ),
        (Report, {**REPORT_ARGS, "cluster_tag": "team\tkafka"},
            "clusterTag is 'team\\tkafka', and no tag has '\\t'; write it as it is."),
        (BillExport, {**BILL_ARGS, "prefix": "sthree-orders"},
            "prefix is 'sthree-orders'; it must be like shop-orders."),
        (Report, {**REPORT_ARGS, "bill": "shop-billing"},
            "bill is 'shop-billing'; it must be like s3://shop-billing/export/shop."),
        (Report, {**REPORT_ARGS, "pools": {}}, "pools is {}; it must have at least one entry."),
        (Report,
            {**REPORT_ARGS, "pools": {"broker": {**REPORT_ARGS["pools"]["broker"], "nodes": 0.0}}},
            "pools.broker: nodes is 0; it must be a whole number from 1 to 1000."),
        (BillExport, {"prefix": "Shop"}, "prefix is 'Shop'; it must be like shop-orders."),
        (BillExport, {**BILL_ARGS, "ephemeral": "yes"},
            "ephemeral is 'yes'; it must be true or false."),
        (BillExport, {"prefix": pulumi.UNKNOWN}, TOO_LATE),
    ],
    ids=[
        "short",
        "half a second",
        "no number",
        "a blank",
        "no group",
        "keys",
        "no zone",
        "no security group",
        "a security group of another kind",
        "no machine",
        "a tag that is a number",
        "a tag of AWS's",
        "a tag that is not ASCII",
        "a tag in two columns",
        "a prefix of S3's",
        "no folder",
        "no pool",
        "no node",
        "capitals",
        "a word",
        "unknown",
    ],
)  # fmt: skip
def test_a_mistake_is_a_sentence(kind: Any, args: Mapping[str, Any], sentence: str) -> None:
    assert refusal(kind, args) == sentence


def test_what_is_left_out_is_a_sentence() -> None:
    with pytest.raises(InputPropertiesError) as refused:
        Package().construct("part", "stillwater:index:Report", {"cluster": "shop-orders"})
    assert refused.value.message == "bill, pools, zones: required, and not given."


def test_every_argument_and_output_is_described() -> None:
    resources = schema()["resources"]
    assert set(resources) == {f"stillwater:index:{kind.__name__}" for kind in COMPONENTS}
    for component in resources.values():
        described = [component, *component["inputProperties"].values()]
        described += component["properties"].values()
        assert all(each["description"].endswith(".") for each in described)
    for kind in schema()["types"].values():
        assert all(each["description"].endswith(".") for each in kind["properties"].values())


SUBNET, SECURITY_GROUP = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"
IMAGE, QUEUE = "registry.example/gate:1.4", "https://sqs.us-east-1.amazonaws.com/000000000000/nth"
TOPIC = "arn:aws:sns:us-east-1:000000000000:pager"
KAFKA: dict[str, Any] = {
    "namespace": "shop-kafka",
    "name": "orders",
    "bootstrap": "kafka.shop.example:9093",
    "credentials_secret": "eyes",
    "authentication": "tls",
}
MACHINES: dict[str, Any] = {"scaling_groups": ["kafka-a", "kafka-b"], "pool_label": "kafka-pool"}
CLUSTER: dict[str, Any] = {
    "cluster": "shop-orders",
    "eks_cluster": "shop",
    "endpoint": ENDPOINT,
    "certificate_authority": CA,
    "kafka": KAFKA,
    "machines": MACHINES,
}
OPERATIONS: dict[str, Any] = {
    **CLUSTER,
    "level": "watch",
    "subnet_ids": [SUBNET],
    "security_group_ids": [SECURITY_GROUP],
}
GATE: dict[str, Any] = {
    **CLUSTER,
    "image": IMAGE,
    "ledger_table": "shop-orders-incidents",
    "ticks_queue_url": "https://sqs.us-east-1.amazonaws.com/000000000000/shop-orders-ticks",
}
DESCRIBED: dict[str, Any] = {
    "eks_cluster": "shop",
    "region": "us-east-1",
    "kafkas": [KAFKA],
    **MACHINES,
    "subnets": [SUBNET],
    "security_groups": [SECURITY_GROUP],
}
# How far, as arguments and as the description's keys.
LEVELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "watch": ({"slack_channel": "C0HARBOUR1", "slack_secret_name": "shop/slack"},
        {"slack": {"channel": "C0HARBOUR1", "secret_name": "shop/slack"}}),
    "gate": ({"gate_image": IMAGE, "alerts_topic_arn": TOPIC},
        {"eviction_gate": {"image": IMAGE}, "alerts": {"sns_topic_arn": TOPIC}}),
    "act": ({"queue_url": QUEUE}, {"queue_url": QUEUE}),
}  # fmt: skip


def made_operations(kind: Any, args: Mapping[str, Any]) -> Recorded:
    return run_program(lambda: kind("shop-orders", args, None))


def inputs(recorded: Recorded) -> dict[tuple[str, str], Any]:
    """Return what is made, without who makes it."""
    return {
        (each.type, each.name): json.dumps(each.inputs, sort_keys=True, default=str)
        for each in recorded.resources
        if not each.type.startswith(("pulumi:", "stillwater:"))
    }


@pytest.mark.parametrize("level", LEVELS)
def test_it_makes_what_the_stack_of_a_description_makes(level: str) -> None:
    arguments, described = LEVELS[level]
    adopt = {**DESCRIBED, "level": level, **described}
    stack = run_program(
        main, stack_name="shop-operations", config={"cluster": json.dumps({"adopt": adopt})}
    )
    component = made_operations(Operations, {**OPERATIONS, "level": level, **arguments})
    assert inputs(component) == inputs(stack)


def test_a_gate_made_elsewhere_is_the_one_that_is_not_made_here() -> None:
    args = {**OPERATIONS, "level": "gate", "gate_image": IMAGE}
    here = inputs(made_operations(Operations, args))
    rest = inputs(made_operations(Operations, {**args, "gate_elsewhere": True}))
    gate = {
        (kind, name.replace("shop-orders-", "shop-orders-gate-", 1))
        for kind, name in inputs(made_operations(EvictionGate, GATE))
    }
    assert rest.keys() < here.keys()
    assert here.keys() - rest.keys() == gate


def test_functions_stand_in_subnets_that_are_known_late() -> None:
    def program() -> None:
        late = pulumi.Output.from_input(SUBNET)
        Operations("shop-orders", {**OPERATIONS, "subnet_ids": [late]})

    (tick,) = [
        each
        for each in run_program(program).of("lambda/function:Function")
        if each.inputs["name"] == "shop-orders-tick"
    ]
    assert tick.inputs["vpcConfig"]["subnetIds"] == [SUBNET]


@pytest.mark.parametrize(
    ("kind", "args", "sentence"),
    [
        (Operations, {**OPERATIONS, "level": "own"},
            "level is 'own'; it must be one of watch, gate, act."),
        (Operations, {**OPERATIONS, "level": "gate"},
            "level is gate and gateImage is not set; name the gate's image in it"),
        (Operations,
            {**OPERATIONS, "machines": {"scaling_groups": ["taken"], "pool_label": "pool"}} | {
                "level": "act", "queue_url": QUEUE},
            "taken has the tag stillwater:cluster=lab: another Stillwater manages it; leave it"),
        (EvictionGate, {**GATE, "image": "registry.example/gate"},
            "image is 'registry.example/gate': registry.example/gate names no version"),
        (EvictionGate, {**GATE, "kafka": {**KAFKA, "namespace": "Shop"}}, "kafka.namespace"),
        (EvictionGate, {**GATE, "machines": {}}, "machines.scalingGroups"),
    ],
    ids=[
        "no such level",
        "no image",
        "another's group",
        "no version",
        "a namespace",
        "no machines",
    ],
)  # fmt: skip
def test_a_mistake_in_operations_is_said(kind: Any, args: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made_operations(kind, args)
    assert sentence in str(refused.value)
    assert "adopt." not in str(refused.value)
