"""infra.functions: what wakes each function, what it reads, what health and volumes are told."""

import importlib
import json
from dataclasses import fields
from typing import Any

import pytest

from core.cluster.limits import nodes
from core.cluster.operated import policy_of
from core.cluster.operation import memory_mib
from core.settings.functions import HealthSettings, TickSettings, kept_fields
from handlers import health as handler
from infra.functions.catalogue import EVERY, LOOP, SAMPLES
from infra.functions.webhook import WEBHOOK
from tests.unit.infra.programs import description, run_changed, spec
from tests.unit.infra.recording import ACCOUNT, Recorded, Resource
from tests.unit.infra.told import told

FUNCTION, MAPPING = "lambda/function:Function", "lambda/eventSourceMapping:EventSourceMapping"
KAFKA_RULE = "handlers-network-to-kafka"
ELSEWHERE = {WEBHOOK.name: "platform", SAMPLES.name: "analytics"}
ROLES = {each.name for each in EVERY} - ELSEWHERE.keys()


@pytest.fixture
def operations(layers: dict[str, Recorded]) -> Recorded:
    return layers["operations"]


def function(operations: Recorded, role: str) -> Resource:
    return operations.one(FUNCTION, f"handlers-{role}-function")


def test_only_our_own_groups_can_be_held_or_released(operations: Recorded) -> None:
    statements = operations.one("iam/rolePolicy:RolePolicy", "handlers-tick-policy").policy
    hold = next(s for s in statements["Statement"] if s["Sid"] == "HoldAndReleaseNodes")
    names = {arn.rpartition("/")[2] for arn in hold["Resource"]}
    assert names == {f"test-orders-{pool}-?" for pool in ("controller", "broker")}
    assert all(f":{ACCOUNT}:autoScalingGroup:" in arn for arn in hold["Resource"])


def test_what_is_rendered_is_what_the_handlers_read(operations: Recorded) -> None:
    timings = spec().timings
    for definition in LOOP:
        settings: Any = told(
            operations, f"handlers-{definition.name}-function", definition.settings
        )
        assert settings.prefix == "test-orders"
        assert settings.ledger_table == operations.outputs["ledger_table"]
        assert settings.ticks_queue_url == operations.outputs["ticks_queue_url"]
    tick = told(operations, "handlers-tick-function", TickSettings)
    assert tick.kafka_bootstrap[0] == "kafka.stillwater.internal:10010"
    assert tick.kafka.secret == "orders-stillwater-tick"
    assert tick.policy.heartbeat_timeout_seconds == timings.hook_heartbeat_timeout_seconds
    assert tick.policy.post_condition_wait_seconds == timings.post_condition_wait_seconds


def test_a_function_is_told_what_its_settings_name(layers: dict[str, Recorded]) -> None:
    for definition in EVERY:
        layer = layers[ELSEWHERE.get(definition.name, "operations")]
        (function,) = [
            each
            for each in layer.of(FUNCTION)
            if each.inputs["handler"] == f"handlers.{definition.name}.handler"
        ]
        variables = function.inputs["environment"]["variables"]
        assert set(variables) <= {"STILLWATER_SETTINGS", "STILLWATER_KEPT"}
        short = set(json.loads(variables["STILLWATER_SETTINGS"]))
        assert not short & kept_fields(definition.settings)
        assert short | kept_fields(definition.settings) == {
            f.name for f in fields(definition.settings)
        }
        # Lambda measures what it stores, with every quote escaped.
        assert len(json.dumps(variables)) < 3000


# Slack's token is a secret that only AWS has.
@pytest.mark.parametrize("role", [each.name for each in EVERY if each.name != "slack"])
def test_an_entry_point_opens_what_it_needs_by_what_is_rendered_for_it(
    layers: dict[str, Recorded], role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    (definition,) = [each for each in EVERY if each.name == role]
    layer = layers[ELSEWHERE.get(role, "operations")]
    (function,) = [
        f for f in layer.of(FUNCTION) if f.inputs["handler"] == f"handlers.{role}.handler"
    ]
    settings = told(layer, function.name, definition.settings)
    entry = importlib.import_module(f"handlers.{role}")
    monkeypatch.setattr(entry, "read_settings", {definition.settings: settings}.__getitem__)
    # What an invocation keeps for the next one.
    (opened,) = [each for each in vars(entry).values() if hasattr(each, "cache_info")]
    assert opened.__wrapped__() is not None


def test_no_hook_is_believed_to_last_longer_than_aws_lets_it() -> None:
    long = spec(timings={"hook_heartbeats": 100, "hook_heartbeat_timeout_seconds": 7200})
    assert policy_of(long).hook_limit_seconds == 172_800


def test_a_broker_is_watched_for_at_least_its_session_timeout() -> None:
    short = spec(timings={"post_condition_hold_seconds": 1})
    watched = policy_of(short).post_condition_hold_seconds
    assert watched == short.timings.broker_session_timeout_seconds


def test_a_listener_without_tls_is_spoken_to_in_the_clear() -> None:
    anonymous = {"tls": False, "authentication": "none", "anonymous_clients": True}
    recorded = run_changed("operations", kafka={"listener": anonymous, "authorization": "none"})
    assert told(recorded, "handlers-tick-function", TickSettings).kafka.security == "PLAINTEXT"
    assert not any("secrets" in right for right in granted(recorded)["handlers", "kafka"])


def test_queues_wake_their_functions_and_take_back_single_messages(operations: Recorded) -> None:
    sources = {m.inputs["functionName"]: m.inputs for m in operations.of(MAPPING)}
    assert sources["test-orders-interruption"]["eventSourceArn"].endswith(":test-orders-events")
    assert sources["test-orders-tick"]["eventSourceArn"].endswith(":test-orders-ticks")
    for source in sources.values():
        assert source["functionResponseTypes"] == ["ReportBatchItemFailures"]


def test_a_message_hides_six_times_as_long_as_a_function_runs(layers: dict[str, Recorded]) -> None:
    timeout = function(layers["operations"], "tick").inputs["timeout"]
    for layer, name in (("operations", "handlers-ticks"), ("platform", "termination-events")):
        queue = layers[layer].one("sqs/queue:Queue", f"{name}-queue").inputs
        assert queue["visibilityTimeoutSeconds"] >= 6 * timeout


@pytest.mark.parametrize(
    ("told", "brokers", "mib"),
    [(None, 3, 512), (None, 200, 640), (None, 157, 576), (1024, 200, 1024)],
)
def test_the_functions_have_memory_for_a_plan_of_all_brokers(
    monkeypatch: pytest.MonkeyPatch, told: int | None, brokers: int, mib: int
) -> None:
    cluster = spec(functions={"memory_mib": told})
    monkeypatch.setattr(type(cluster), "brokers", brokers)
    assert memory_mib(cluster) == mib


def test_every_function_has_the_memory_of_the_spec(operations: Recorded) -> None:
    assert function(operations, "rotate").inputs["memorySize"] == memory_mib(spec())


def test_the_sweep_wakes_every_minute_and_nobody_else_may_wake_it(operations: Recorded) -> None:
    rule = operations.one("cloudwatch/eventRule:EventRule", "handlers-sweep-schedule")
    assert rule.inputs["scheduleExpression"] == "rate(1 minute)"
    permission = operations.one("lambda/permission:Permission", "handlers-sweep-permission").inputs
    assert permission["principal"] == "events.amazonaws.com"
    assert permission["sourceArn"].endswith(":test-orders-sweep-schedule")


def test_all_functions_run_the_same_zip(layers: dict[str, Recorded], operations: Recorded) -> None:
    others = [layers[layer].one(FUNCTION) for layer in ELSEWHERE.values()]
    hashes = {f.inputs["sourceCodeHash"] for f in (*operations.of(FUNCTION), *others)}
    assert len(hashes) == 1
    names = {f.inputs["handler"] for f in operations.of(FUNCTION)}
    assert names == {f"handlers.{role}.handler" for role in ROLES}


def test_only_who_speaks_to_the_cluster_stands_in_the_vpc(operations: Recorded) -> None:
    placed = {f.inputs["handler"] for f in operations.of(FUNCTION) if "vpcConfig" in f.inputs}
    asking = {each.name for each in EVERY if each.kubernetes is not None}
    assert placed == {f"handlers.{role}.handler" for role in asking & ROLES}


RBAC = "rbac.authorization.k8s.io/v1:"
PODS = [f"controller-{zone}-{number}" for number, zone in enumerate("abc")]
PODS += [f"broker-{zone}-{(number + 1) * 10}" for number, zone in enumerate("abc")]
METRICS = ", ".join(f"get pods/proxy orders-{pod}:9404" for pod in PODS)
AUTHORITY = "get secrets orders-cluster-ca-cert, get secrets orders-stillwater"
KAFKA = "get kafkas orders"
# Role and namespace -> what is granted; what has a name, by that name alone.
GRANTED = {
    ("handlers", None): "get nodes, list nodes, patch nodes, list csinodes, "
    "list volumeattachments, delete volumeattachments, list pods",
    ("handlers", "kafka"): "get pods, patch pods, list persistentvolumeclaims, "
    "list kafkanodepools, list kafkarebalances, list strimzipodsets, list poddisruptionbudgets, "
    f"patch poddisruptionbudgets orders-staying, {KAFKA}, {AUTHORITY}-tick, {METRICS}",
    ("health", "kafka"): f"list pods, list kafkarebalances, {KAFKA}, {AUTHORITY}-health, {METRICS}",
    ("rotate", None): "list nodes, list csinodes",
    ("rotate", "kafka"): "list pods, list kafkanodepools, list kafkarebalances, "
    f"list strimzipodsets, {KAFKA}, {AUTHORITY}-rotate, {METRICS}",
    ("sweep", None): "list nodes, list csinodes",
    ("sweep", "kafka"): "list pods, list kafkarebalances",
    ("volumes", None): "list persistentvolumes, list volumeattributesclasses",
    ("volumes", "kafka"): "list persistentvolumeclaims, list kafkanodepools, "
    f"{KAFKA}, {AUTHORITY}-volumes",
    ("volumes", "monitoring"): "get services/proxy prometheus:9090",
}


def granted(layer: Recorded) -> dict[tuple[str, str | None], set[str]]:
    """Return what each role of a layer grants: a verb, a resource, and a name if it has one."""
    return {
        (metadata["name"].removeprefix("stillwater-"), metadata.get("namespace")): {
            " ".join((verb, resource, *name))
            for rule in role.inputs["rules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
            for name in [[each] for each in rule.get("resourceNames", ())] or [[]]
        }
        for kind in ("ClusterRole", "Role")
        for role in layer.of(f"{RBAC}{kind}")
        for metadata in [role.inputs["metadata"]]
    }


def test_in_the_cluster_each_function_may_do_what_is_listed_alone(operations: Recorded) -> None:
    assert granted(operations) == {key: set(what.split(", ")) for key, what in GRANTED.items()}
    for kind in ("ClusterRole", "Role"):
        for each in operations.of(f"{RBAC}{kind}Binding"):
            role = each.inputs["roleRef"]["name"].removeprefix("stillwater-")
            (subject,) = each.inputs["subjects"]
            assert (subject["kind"], subject["name"]) == ("Group", f"stillwater:{role}")
    groups = {
        entry.inputs["principalArn"].rpartition("-")[2]: entry.inputs["kubernetesGroups"]
        for entry in operations.of("eks/accessEntry:AccessEntry")
    }
    of_their_own = ("health", "rotate", "sweep", "volumes")
    expected = {role: [f"stillwater:{role}"] for role in of_their_own}
    assert groups == {**expected, "tick": ["stillwater:handlers"]}


def test_admission_limits_what_the_tick_writes_and_nobody_else(operations: Recorded) -> None:
    kind = "admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
    policies = {
        each.inputs["metadata"]["name"]: each.inputs["spec"] for each in operations.of(kind)
    }
    objects = ("nodes", "pods", "poddisruptionbudgets")
    assert set(policies) == {f"stillwater-handlers-{each}" for each in objects}
    for spec_ in policies.values():
        (condition,) = spec_["matchConditions"]
        assert condition["expression"] == '"stillwater:handlers" in request.userInfo.groups'
    bindings = operations.of(f"{kind}Binding")
    assert {each.inputs["spec"]["policyName"] for each in bindings} == set(policies)
    assert all(each.inputs["spec"]["validationActions"] == ["Deny"] for each in bindings)


def test_the_tick_reaches_every_port_a_broker_may_get(operations: Recorded) -> None:
    rule = operations.one("vpc/securityGroupEgressRule:SecurityGroupEgressRule", KAFKA_RULE).inputs
    # Three zones of ten reserved ids each, from 10 on.
    assert (rule["fromPort"], rule["toPort"]) == (10010, 10039)
    # Of the load balancer, and of nothing else: it carries every byte to a broker.
    assert "cidrIpv4" not in rule
    assert rule["referencedSecurityGroupId"]


def test_lambda_finds_the_rights_it_asks_a_role_in_a_vpc_for(operations: Recorded) -> None:
    statements = operations.one("iam/rolePolicy:RolePolicy", "handlers-tick-policy").policy
    tend = next(s for s in statements["Statement"] if s["Sid"] == "TendItsInterfaces")
    # terraform-provider-aws#20698: interfaces alone are refused.
    assert tend["Resource"] == [f"arn:aws:ec2:us-east-1:{ACCOUNT}:*/*"]


def test_logs_do_not_stay_for_ever(operations: Recorded) -> None:
    groups = operations.of("cloudwatch/logGroup:LogGroup")
    assert {g.inputs["name"] for g in groups} == {f"/aws/lambda/test-orders-{r}" for r in ROLES}
    assert all(g.inputs["retentionInDays"] > 0 for g in groups)


def test_the_ledger_forgets_by_itself_and_can_be_restored(operations: Recorded) -> None:
    table = operations.one("dynamodb/table:Table").inputs
    assert table["deletionProtectionEnabled"]
    assert table["hashKey"] == "pk"
    assert table["billingMode"] == "PAY_PER_REQUEST"
    assert table["ttl"] == {"attributeName": "expires_at", "enabled": True}
    assert table["pointInTimeRecovery"]["enabled"]
    (index,) = table["globalSecondaryIndexes"]
    assert index["name"] == "open"
    assert index["keySchemas"] == [{"attributeName": "open", "keyType": "HASH"}]


@pytest.fixture(scope="module")
def connected(cache: None) -> Recorded:
    return run_changed("operations", connect={"replicas": 2, "startup_seconds": 300})


def test_it_may_get_one_port_of_each_worker_and_nothing_else_of_a_pod(connected: Recorded) -> None:
    workers = {f"get pods/proxy orders-connect-connect-{number}:8083" for number in (0, 1)}
    before = set(GRANTED["health", "kafka"].split(", "))
    assert granted(connected)["health", "kafka"] == before | workers


def test_without_connect_and_metrics_it_reaches_no_pod(cache: None) -> None:
    bare = run_changed("operations", metrics={"enabled": False})
    assert not any("pods/proxy" in right for right in granted(bare)["health", "kafka"])
    assert not told(bare, "health-function-function", HealthSettings).exporters


def test_only_its_schedule_and_the_accounts_policies_invoke_it(connected: Recorded) -> None:
    # No other permission and no URL: whoever may is told by their own identity.
    rule = connected.one("cloudwatch/eventRule:EventRule", "health-schedule").inputs
    assert rule["scheduleExpression"] == "rate(5 minutes)"
    permissions = connected.of("lambda/permission:Permission")
    (only,) = [p.inputs for p in permissions if "health" in p.inputs["function"]]
    assert only["principal"] == "events.amazonaws.com"
    assert only["sourceArn"].endswith(":test-orders-health-schedule")
    target = connected.one("cloudwatch/eventTarget:EventTarget", "health-target").inputs
    assert target["arn"].endswith(":test-orders-health")
    assert not [u for u in connected.of("lambda/functionUrl:FunctionUrl") if "health" in u.name]


def test_it_reads_the_ledger_and_writes_nothing(connected: Recorded) -> None:
    statements = connected.one("iam/rolePolicy:RolePolicy", "health-function-policy").policy
    calls = [
        (action, (statement.get("Condition") or {}).get("ForAllValues:StringLike"))
        for statement in statements["Statement"]
        for action in statement["Action"]
        if action.startswith("dynamodb:")
    ]
    assert calls == [
        ("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["freezes#orders"]}),
        ("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["settings#*"]}),
        ("dynamodb:Query", None),
    ]


def test_the_environment_is_read(connected: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    function = connected.one("lambda/function:Function", "health-function-function").inputs
    settings = told(connected, "health-function-function", HealthSettings)
    monkeypatch.setattr(handler, "read_settings", lambda _: settings)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    examiner = handler._examiner.__wrapped__()
    assert list(examiner.workers) == ["orders-connect-connect-0", "orders-connect-connect-1"]
    assert examiner.expected.worker_startup_seconds == 300
    expected = {**dict.fromkeys((0, 1, 2), "controller"), **dict.fromkeys((10, 20, 30), "broker")}
    assert examiner.expected.roles == expected
    assert examiner.exporting[20] == "orders-broker-b-20"
    assert len(examiner.exporting) == 6
    # It must answer before it is killed.
    assert examiner.seconds < function["timeout"]


def test_nodes_are_those_that_the_pools_run() -> None:
    described = spec(
        pools=[
            {**pool, "nodes_per_zone": 2} if pool["role"] == "broker" else pool
            for pool in description()["pools"]
        ]
    )
    brokers = [(n.node_pool, n.node_id) for n in nodes(described) if n.role == "broker"]
    pools = ["broker-a"] * 2 + ["broker-b"] * 2 + ["broker-c"] * 2
    assert brokers == list(zip(pools, (10, 11, 20, 21, 30, 31), strict=True))


HOOK = "autoscaling/lifecycleHook:LifecycleHook"
# What a held instance needs: news of it, a tick, the right to ask the API server, and a sweep.
ANSWERING = {
    "handlers-interruption-source",
    "handlers-tick-source",
    "handlers-tick-function",
    "handlers-sweep-function",
}


@pytest.fixture
def hooks(layers: dict[str, Recorded]) -> list[Resource]:
    return layers["operations"].of(HOOK)


def test_no_layer_before_the_functions_makes_a_hook(layers: dict[str, Recorded]) -> None:
    for layer in ("foundation", "platform", "kafka"):
        assert layers[layer].of(HOOK) == []


def test_a_hook_comes_after_all_that_answers_it(hooks: list[Resource]) -> None:
    for hook in hooks:
        assert hook.depends_on >= ANSWERING, hook.name
        assert hook.inputs["defaultResult"] == "ABANDON"
        assert hook.inputs["lifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
