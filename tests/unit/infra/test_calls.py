"""Each function may make the calls its code makes, of the resources it knows, and no other.

What the code calls is derived from it (calls.py); what Lambda itself calls with a function's role,
from how the function is wired; of which resources, from the settings it is told.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from infra.functions.catalogue import EVERY
from tests.unit.infra import calls, variants
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.told import told

FUNCTION = "lambda/function:Function"
MAPPING = "lambda/eventSourceMapping:EventSourceMapping"
POLICY = "iam/rolePolicy:RolePolicy"
# What Lambda calls with a function's role -> when it does.
LOGGING = {"logs:CreateLogStream", "logs:PutLogEvents"}
POLLING = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
# What SNS calls with the rights of whoever publishes on a topic that is encrypted.
ENCRYPTING = {"kms:Decrypt", "kms:GenerateDataKey"}
# What is done to groups.
HOLDING = {
    "autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat",
    "autoscaling:SetDesiredCapacity", "autoscaling:SetInstanceProtection",
    "autoscaling:TerminateInstanceInAutoScalingGroup", "ec2:CreateReplaceRootVolumeTask",
    "ec2:CreateTags", "ec2:DescribeReplaceRootVolumeTasks",
}  # fmt: skip
# A task is tagged by the call that makes it.
TAGGED_AT_BIRTH = {"ec2:CreateReplaceRootVolumeTask": "ec2:CreateTags"}
IN_A_VPC = {
    "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
}  # fmt: skip


@pytest.fixture(scope="module", params=["asg", "direct", "karpenter"])
def recorded(request: pytest.FixtureRequest, cache: None) -> Mapping[str, Recorded]:
    return variants.recorded(request.param)


def functions(layers: Mapping[str, Recorded]) -> dict[str, tuple[Recorded, Resource]]:
    """Return the functions by role, each with the layer it is in."""
    return {
        each.inputs["handler"].split(".")[1]: (layer, each)
        for layer in layers.values()
        for each in layer.of(FUNCTION)
    }


def statements(layer: Recorded, function: Resource) -> list[dict[str, Any]]:
    role = function.inputs["role"].rpartition("/")[2]
    return [
        statement
        for policy in layer.of(POLICY)
        if policy.inputs["role"] == role
        for statement in policy.policy_statements
    ]


def for_lambda(layer: Recorded, function: Resource) -> set[str]:
    """Return what Lambda itself needs to run a function as it is wired."""
    fed = [m for m in layer.of(MAPPING) if m.inputs["functionName"] == function.inputs["name"]]
    needed = set(LOGGING)
    if any(":sqs:" in m.inputs["eventSourceArn"] for m in fed):
        needed |= POLLING
    if function.inputs.get("vpcConfig"):
        needed |= IN_A_VPC
    if function.inputs.get("deadLetterConfig"):
        needed |= {"sqs:SendMessage"}
    return needed


def test_a_role_allows_what_its_function_calls_alone(recorded: Mapping[str, Recorded]) -> None:
    for role, (layer, function) in functions(recorded).items():
        needed = calls.of_role(role) | for_lambda(layer, function)
        needed |= ENCRYPTING if "sns:Publish" in needed else set()
        needed |= {TAGGED_AT_BIRTH[each] for each in needed & TAGGED_AT_BIRTH.keys()}
        if not recorded["kafka"].of("autoscaling/group:Group"):
            needed -= HOLDING  # Karpenter's: there is no group that could be named.
        allowed = {action for each in statements(layer, function) for action in each["Action"]}
        assert needed - allowed == set(), f"λ {role} is denied what it calls"
        assert allowed - needed == set(), f"λ {role} may do what it never does; take it away"


def entry_points() -> set[str]:
    return {
        name.partition(".")[2]
        for name, module in calls.modules().items()
        if "handler" in module.functions
    }


def test_there_is_a_function_for_every_entry_point(recorded: Mapping[str, Recorded]) -> None:
    assert entry_points() == functions(recorded).keys()


def test_no_call_hides_behind_a_client_under_another_name() -> None:
    assert calls.unattributed() == []


def known_resources(layers: Mapping[str, Recorded], role: str) -> Mapping[str, set[str]]:
    """Return what a function's settings name, by the actions it is needed for."""
    layer, function = functions(layers)[role]
    definition = next(each for each in EVERY if each.name == role)
    known: Any = told(layer, function.name, definition.settings)
    urls = [getattr(known, f.name) for f in fields(known) if f.name.endswith("_queue_url")]
    secret = str(getattr(known, "secret_arn", getattr(known, "secret_name", "")))
    table = f"table/{known.ledger_table}"
    fed = [m for m in layer.of(MAPPING) if m.inputs["functionName"] == function.inputs["name"]]
    # By name: a group that is made again keeps its place, and under Karpenter there is none.
    held = {
        f"autoScalingGroup:*:autoScalingGroupName/{known.prefix}-{pool}-?"
        for pool in ("controller", "broker")
    }
    return {
        "sqs:SendMessage": {url.rpartition("/")[2] for url in urls if url},
        "sqs:": {m.inputs["eventSourceArn"].rpartition(":")[2] for m in fed},
        "dynamodb:Query": {f"{table}/index/open"},
        "dynamodb:": {table},
        "secretsmanager:": {
            f"secret:{secret.rpartition(':secret:')[2].removesuffix('-AbCdEf')}-??????"
        },
        "s3:PutObject": {
            f"{getattr(known, 'archive_bucket', '')}/incidents/*",
            f"{getattr(known, 'samples_bucket', '')}/metrics/hour-*",
        },
        "s3:ListBucket": {getattr(known, "samples_bucket", "")},
        "autoscaling:": held,
        # Which instances, by their group's tag; what is made of them has no name yet.
        "ec2:Create": {
            *(f"{kind}/*" for kind in ("instance", "volume", "image", "snapshot")),
            "replace-root-volume-task/*",
        },
        "sns:Publish": {str(getattr(known, "alerts_topic_arn", "")).rpartition(":")[2]},
        # Whichever key the topic has, and through SNS alone.
        "kms:": {"key/*"},
    }


def test_a_role_is_granted_what_its_settings_name(recorded: Mapping[str, Recorded]) -> None:
    for role, (layer, function) in functions(recorded).items():
        known = known_resources(recorded, role)
        for statement in statements(layer, function):
            actions = set(statement["Action"])
            named = {arn.split(":", 5)[-1] for arn in statement["Resource"]}
            if actions <= LOGGING | IN_A_VPC:
                continue  # Lambda itself asks for these.
            for action in actions:
                if named == {"*"}:
                    # Neither Describe calls nor metrics' data know a resource.
                    assert action.partition(":")[2].startswith(("Describe", "GetMetricData")), role
                else:
                    expected = next(of for start, of in known.items() if action.startswith(start))
                    assert named <= expected, (role, action)


# What a description may leave out: TLS, metrics and Connect, a Prometheus, volumes that change,
# nodes that Karpenter launches.
AT_TIMES = {
    ("get", "secrets"),
    ("get", "pods/proxy"),
    ("get", "services/proxy"),
    ("patch", "kafkanodepools"),
    ("list", "nodeclaims"),
    ("delete", "nodeclaims"),
}
# And of one function alone: a description of ours names its nodes, an adopted one does not; and it
# always has a termination handler.
AT_TIMES_OF = {"health": {("list", "strimzipodsets")}, "tick": {("create", "pods/eviction")}}


def in_the_cluster(layer: Recorded, role: str) -> set[tuple[str, str]]:
    """Return what RBAC grants the group that a function's access entry names."""
    rbac = "rbac.authorization.k8s.io/v1:"
    entries = [
        each.inputs["kubernetesGroups"][0]
        for each in layer.of("eks/accessEntry:AccessEntry")
        if each.inputs["principalArn"].endswith(f"-{role}")
    ]
    bound = {
        (binding.inputs["roleRef"]["kind"], binding.inputs["roleRef"]["name"])
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in layer.of(f"{rbac}{kind}")
        if binding.inputs["subjects"][0]["name"] in entries
    }
    return {
        (verb, resource)
        for kind in ("ClusterRole", "Role")
        for each in layer.of(f"{rbac}{kind}")
        if (kind, each.inputs["metadata"]["name"]) in bound
        for rule in each.inputs["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_rbac_allows_what_a_function_asks_and_no_more(recorded: Mapping[str, Recorded]) -> None:
    for role, (layer, function) in functions(recorded).items():
        asked = calls.in_kubernetes(role)
        allowed = in_the_cluster(layer, role)
        assert bool(function.inputs.get("vpcConfig")) == bool(allowed), role
        at_times = AT_TIMES | AT_TIMES_OF.get(role, set())
        assert asked - allowed <= at_times, f"λ {role} is denied what it asks"
        assert allowed - asked == set(), f"λ {role} may do what it never does; take it away"
