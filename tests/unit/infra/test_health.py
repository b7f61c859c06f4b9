"""health: a function that reads, what it may read, and the variables it is told by."""

from __future__ import annotations

import pytest

from core.cluster.limits import nodes
from core.settings.functions import HealthSettings
from handlers import health as handler
from tests.unit.infra.programs import description, run_changed, spec
from tests.unit.infra.recording import Recorded
from tests.unit.infra.told import told

RBAC = "rbac.authorization.k8s.io/v1:"


@pytest.fixture(scope="module")
def connected(cache: None) -> Recorded:
    return run_changed("operations", connect={"replicas": 2, "startup_seconds": 300})


def granted(recorded: Recorded) -> list[tuple[object, ...]]:
    rules = recorded.one(f"{RBAC}Role", "health-role").inputs["rules"]
    return [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in rules]


def test_it_may_get_one_port_of_each_worker_and_nothing_else_of_a_pod(connected: Recorded) -> None:
    assert granted(connected) == [
        (["pods"], ["list"], None),
        (["kafkas"], ["get"], ["orders"]),
        (
            ["pods/proxy"],
            ["get"],
            [
                *(f"orders-controller-{zone}-{n}:9404" for n, zone in enumerate("abc")),
                *(
                    f"orders-broker-{zone}-{n}:9404"
                    for n, zone in zip((10, 20, 30), "abc", strict=True)
                ),
                "orders-connect-connect-0:8083",
                "orders-connect-connect-1:8083",
            ],
        ),
        (["secrets"], ["get"], ["orders-cluster-ca-cert", "orders-stillwater-health"]),
    ]


def test_without_connect_and_metrics_it_reaches_no_pod(cache: None) -> None:
    bare = run_changed("operations", metrics={"enabled": False})
    assert [resources for resources, *_ in granted(bare)] == [["pods"], ["kafkas"], ["secrets"]]
    assert not told(bare, "health-function-function", HealthSettings).exporters


def test_it_is_known_to_the_cluster_by_a_group_of_its_own(connected: Recorded) -> None:
    entry = connected.one("eks/accessEntry:AccessEntry", "health-entry").inputs
    binding = connected.one(f"{RBAC}RoleBinding", "health-role-binding").inputs
    assert entry["principalArn"].endswith(":role/test-orders-health")
    assert [s["name"] for s in binding["subjects"]] == entry["kubernetesGroups"]


def test_nobody_but_its_schedule_and_the_accounts_own_policies_may_invoke_it(
    connected: Recorded,
) -> None:
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


def test_the_environment_is_what_the_handler_reads(
    connected: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = connected.one("lambda/function:Function", "health-function-function").inputs
    settings = told(connected, "health-function-function", HealthSettings)
    monkeypatch.setattr(handler, "read_settings", lambda _: settings)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    examiner = handler._examiner.__wrapped__()
    assert list(examiner.workers) == ["orders-connect-connect-0", "orders-connect-connect-1"]
    assert examiner.expected.worker_startup_seconds == 300
    assert examiner.expected.roles == {
        **dict.fromkeys((0, 1, 2), "controller"),
        **dict.fromkeys((10, 20, 30), "broker"),
    }
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
