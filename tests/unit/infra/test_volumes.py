"""λ volumes as it is made: what it is told, and that it may patch node pools and nothing else."""

import json
from decimal import Decimal

from core.cluster import ClusterSpec, parse
from core.cluster.operated import volumes
from core.settings import codec
from core.settings.volumes import VolumeSettings
from core.volumes.sizing import Gp3, Performance
from infra.kafka.storage import _performances
from tests.unit.infra.programs import description, run_changed
from tests.unit.infra.recording import Recorded
from tests.unit.infra.test_functions import granted

RBAC = "rbac.authorization.k8s.io/v1:"
WORKSPACE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d"


def operations(prometheus: str | None = None, **volumes: object) -> Recorded:
    metrics = {"prometheus": {"address": prometheus}} if prometheus else {}
    return run_changed("operations", volumes=volumes, metrics=metrics)


def test_it_patches_node_pools_where_it_applies_alone() -> None:
    before, applying = (
        granted(operations(**volumes))
        for volumes in ({}, {"mode": "apply", "max_monthly_increase_usd": 50})
    )
    assert applying["volumes", "kafka"] - before["volumes", "kafka"] == {"patch kafkanodepools"}


def test_in_the_account_it_reads_and_writes_items_of_its_own() -> None:
    policy = operations().one("iam/rolePolicy:RolePolicy", "volumes-function-policy").policy
    by_sid = {s["Sid"]: s for s in policy["Statement"]}
    assert by_sid["LookAround"]["Action"] == [
        "cloudwatch:GetMetricData",
        "ec2:DescribeInstances",
        "ec2:DescribeVolumes",
        "ec2:DescribeVolumesModifications",
    ]
    remember = by_sid["RememberVolumes"]
    assert remember["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["volume#*"]}
    }
    departures = by_sid["ReadDepartures"]
    assert departures["Action"] == ["dynamodb:GetItem"]
    keys = departures["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    assert keys[0] == "incident#*"
    assert keys[1].startswith("rotation#")


def test_a_prometheus_of_the_clusters_is_reached_by_one_services_name_and_port() -> None:
    recorded = operations("http://prometheus-operated.monitoring.svc:9090")
    role = recorded.one(f"{RBAC}Role", "volumes-access-prometheus").inputs
    assert role["metadata"]["namespace"] == "monitoring"
    (rule,) = role["rules"]
    expected = (["services/proxy"], ["prometheus-operated:9090"], ["get"])
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == expected


def test_one_in_kafkas_namespace_is_in_the_role_that_is_there() -> None:
    recorded = operations("http://prometheus.kafka.svc:9090")
    rules = recorded.one(f"{RBAC}Role", "volumes-access-role").inputs["rules"]
    assert ["services/proxy"] in [rule["resources"] for rule in rules]


def test_a_workspace_is_queried_under_the_functions_role_and_no_other_is() -> None:
    policy = operations(WORKSPACE).one("iam/rolePolicy:RolePolicy", "volumes-function-policy")
    (statement,) = [s for s in policy.policy["Statement"] if s["Sid"] == "AskPrometheus"]
    assert statement["Action"] == ["aps:QueryMetrics"]
    (workspace,) = statement["Resource"]
    assert workspace.startswith("arn:aws:aps:us-east-1:")
    assert workspace.endswith(":workspace/ws-0a1b2c3d")


def spec(**volumes: object) -> ClusterSpec:
    return parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            "volumes": volumes,
            "pools": [
                {
                    "name": "node",
                    "role": "combined",
                    "instance_type": "r7g.xlarge",
                    "first_node_id": 0,
                    "volumes": [{"size_gib": 500, "iops": 4000, "throughput_mib_per_s": 140}],
                    "volume_policy": {"free_percent": 20, "max_size_gib": 2000},
                }
            ],
        }
    )


def reread(described: ClusterSpec) -> VolumeSettings:
    return codec.read(VolumeSettings, json.loads(codec.write(codec.document(volumes(described)))))


def test_the_function_reads_what_is_rendered_for_it() -> None:
    read = reread(spec(mode="apply", max_monthly_increase_usd=50))
    assert (read.applies, read.frozen, read.budget_usd) == (True, False, Decimal(50))
    assert set(read.pools) == {"node-a", "node-b", "node-c"}
    pool = read.pools["node-a"]
    assert pool.volumes == (Gp3(500, Performance(4000, 140)),)
    assert (pool.policy.free_share, pool.policy.largest_gib) == (0.2, 2000)
    assert pool.policy.apply


def test_controllers_volumes_are_grown_and_never_raised() -> None:
    described = ClusterSpec.model_validate(
        description(
            volumes={"mode": "apply", "max_monthly_increase_usd": 50},
            metrics={"prometheus": {"address": WORKSPACE, "labels": {"cluster": "prod"}}},
        )
    )
    read = reread(described)
    role = {pool.name: pool.role for pool in described.pools}
    for name, pool in read.pools.items():
        assert pool.policy.grow_only is not role[name.rpartition("-")[0]].is_broker
    assert read.prometheus.labels == {"cluster": "prod"}
    voters = [pool for pool in described.pools if not pool.role.is_broker]
    assert len(_performances(voters, may_change=True)) == 1


def test_classes_are_made_for_what_may_be_chosen_and_only_where_it_may() -> None:
    described = spec()
    assert set(_performances(described.pools, may_change=False)) == {"gp3-4000-140"}
    changing = _performances(described.pools, may_change=True)
    assert set(changing) == {"gp3-4000-140", "gp3-6000-140", "gp3-4000-149", "gp3-6000-149"}
