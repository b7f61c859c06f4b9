"""The job that reads bills, and λ volumes: their requests, code, rights and exports."""

from __future__ import annotations

import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from core.cluster import ClusterSpec, parse
from core.cluster.operated import volumes
from core.cluster.report_facts import report_facts
from core.settings import codec, facts
from core.settings.volumes import VolumeSettings
from core.volumes.sizing import Gp3, Performance
from infra.analytics import report_job, workspace
from infra.iam import Account
from infra.kafka.storage import _performances
from spark.ingest import cur, cur_names
from spark.jobs import scheduled
from tests.unit.infra import programs
from tests.unit.infra.programs import description, run_layer
from tests.unit.infra.recording import Recorded

BUCKET, INCIDENTS = "test-orders-billing-123456789012", "test-orders-incidents-123456789012"
ROLE_POLICY = "analytics-job-policy"
ACCOUNT = Account(partition="aws", region="us-east-1", account_id="123456789012")


def told(layers: dict[str, Recorded]) -> list[str]:
    """Return what the deployed job is told."""
    job = json.loads(layers["analytics"].outputs["report_job"])
    return list(job["JobDriver"]["SparkSubmit"]["EntryPointArguments"])


def test_the_export_selects_every_column_that_the_reader_asks_for() -> None:
    selected = set(workspace.columns(split=False))
    assert set(cur.REQUIRED) | set(cur_names.OPTIONAL) | {"resource_tags"} <= selected
    configuration = workspace.configuration(ACCOUNT, split=False)[workspace.TABLE]
    assert configuration["INCLUDE_RESOURCES"] == "TRUE"


def test_the_export_has_what_pods_cost_where_the_spec_asks_for_it() -> None:
    table = workspace.TABLE
    setting = "INCLUDE_SPLIT_COST_ALLOCATION_DATA"
    # AWS refuses a column that the table, made without such lines, does not have.
    assert not set(workspace.columns(split=False)) & set(cur_names.SPLIT_COLUMNS)
    assert workspace.configuration(ACCOUNT, split=False)[table][setting] == "FALSE"
    wanted = {*cur_names.SPLIT_COLUMNS, *cur_names.SPLIT_NET.values()}
    assert wanted <= set(workspace.columns(split=True))
    assert workspace.configuration(ACCOUNT, split=True)[table][setting] == "TRUE"


def test_another_query_is_an_export_once_the_first_is_gone(layers: dict[str, Recorded]) -> None:
    assert layers["analytics"].one("bcmdata/export:Export").delete_before_replace


def test_aws_may_write_this_accounts_exports_and_nothing_else(layers: dict[str, Recorded]) -> None:
    policy = json.loads(layers["analytics"].one("s3/bucketPolicy:BucketPolicy").inputs["policy"])
    (delivery,) = [s for s in policy["Statement"] if s["Sid"] == "DataExports"]
    assert delivery["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    assert delivery["Action"] == ["s3:GetBucketPolicy", "s3:PutObject"]


def test_the_schedule_starts_the_job_that_the_stack_hands_out(layers: dict[str, Recorded]) -> None:
    analytics = layers["analytics"]
    job = json.loads(analytics.outputs["report_job"])
    schedule = analytics.one("scheduler/schedule:Schedule").inputs["target"]
    assert json.loads(schedule["input"]) == {
        **job,
        "ClientToken": "<aws.scheduler.execution-id>",
    }
    submitted = job["JobDriver"]["SparkSubmit"]
    bucket = f"s3://{BUCKET}/"
    keys = {r.inputs["key"] for r in analytics.of("s3/bucketObjectv2:BucketObjectv2")}
    assert submitted["EntryPoint"].removeprefix(bucket) in keys
    assert f"spark.submit.pyFiles={bucket}" in submitted["SparkSubmitParameters"]
    export = analytics.one("bcmdata/export:Export").inputs["export"]
    known = scheduled.parser().parse_args(told(layers))
    assert known.bill == f"{bucket}export/{export['name']}"


def test_the_job_is_told_which_tags_mean_kafka_where_they_are_not_ours() -> None:
    parts: dict[str, Any] = dict(
        **dict.fromkeys(("application", "role", "bucket", "jobs", "launcher"), "x"),
        name="reports",
        cluster="orders",
        tags={},
        bill="export/x",
        packages={},
        facts="facts/cluster.json",
        incidents_bucket="incidents",
        database="tables",
    )

    def known(cluster_tag: str | None, pool_tag: str | None) -> tuple[str | None, str | None]:
        tags = {"--cluster-tag": cluster_tag, "--pool-tag": pool_tag}
        made = report_job.JobParts(**parts, bill_tags=tags)
        submitted = report_job.start(made)["JobDriver"]["SparkSubmit"]
        chosen = scheduled.parser().parse_args(submitted["EntryPointArguments"])
        return chosen.cluster_tag, chosen.pool_tag

    assert known("team=streaming", "pool") == ("team=streaming", "pool")
    assert known(None, None) == (None, None)


def test_the_job_makes_every_table_of_open_months(layers: dict[str, Recorded]) -> None:
    known = scheduled.parser().parse_args(told(layers))
    assert known.all_jobs
    assert known.unsettled
    assert known.month == []
    assert known.metrics == f"s3://{BUCKET}/metrics"
    assert known.history == f"s3://{layers['operations'].outputs['incidents_bucket']}/incidents"


def test_the_job_is_told_what_the_spec_says_of_the_cluster(layers: dict[str, Recorded]) -> None:
    known = scheduled.parser().parse_args(told(layers))
    objects = layers["analytics"].of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"].startswith("facts/")]
    assert known.facts == f"s3://{BUCKET}/{written.inputs['key']}"
    content = written.inputs["content"].encode()
    assert facts.parse(content, "the facts") == report_facts(programs.spec())


def test_another_spec_is_other_facts_under_the_same_key() -> None:
    changed = programs.run_layer(
        "analytics",
        programs.description(kafka={"config": {"log.retention.hours": 24}}, metrics={}),
        {"test-operations": {"incidents_bucket": INCIDENTS}},
    )
    objects = changed.of("s3/bucketObjectv2:BucketObjectv2")
    (written,) = [each for each in objects if each.inputs["key"] == "facts/cluster.json"]
    assert facts.parse(written.inputs["content"].encode(), "").retention_seconds == 24 * 3600


def test_the_job_reads_inputs_and_filed_incidents_alone(layers: dict[str, Recorded]) -> None:
    (policy,) = [
        each
        for each in layers["analytics"].of("iam/rolePolicy:RolePolicy")
        if each.name == ROLE_POLICY
    ]
    statements = {each["Sid"]: each for each in policy.policy_statements}
    bills, incidents = f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{INCIDENTS}"
    reading = {sid for sid, each in statements.items() if "s3:GetObject" in each["Action"]}
    assert reading == {"ReadInputsAndCode", "ReadIncidents", "KeepTablesAndLogs"}
    inputs = ("export", "code", "facts", "metrics")
    assert statements["ReadInputsAndCode"]["Resource"] == [
        *(f"{bills}/{name}/*" for name in inputs),
        f"{bills}/metrics",
    ]
    assert statements["ReadIncidents"] == {
        "Sid": "ReadIncidents",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": [f"{incidents}/incidents", f"{incidents}/incidents/*"],
    }
    assert statements["ListIncidents"]["Resource"] == [incidents]
    assert statements["ListIncidents"]["Condition"] == {
        "StringLike": {"s3:prefix": ["incidents", "incidents/*"]}
    }
    writing = [
        resource
        for each in statements.values()
        if "s3:PutObject" in each["Action"]
        for resource in each["Resource"]
    ]
    assert writing == [f"{bills}/tables/*", f"{bills}/logs/*"]


def test_the_same_sources_make_the_same_zip_which_workers_find_as_well(tmp_path: Path) -> None:
    first = report_job.build(tmp_path / "a")
    second = report_job.build(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.name == second.parent.name
    # What pyspark puts on its workers' path (SparkContext.PACKAGE_EXTENSIONS).
    assert first.suffix in SparkContext.PACKAGE_EXTENSIONS
    with zipfile.ZipFile(first) as jobs:
        names = set(jobs.namelist())
    assert {"spark/entry.py", "spark/rules/meters.toml", "core/prices.json"} <= names
    assert not [name for name in names if name.startswith(("core/cluster/", "infra/"))]


def test_the_zip_brings_a_directorys_own_prices(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text("{}")
    with zipfile.ZipFile(report_job.build(tmp_path / "c", own_prices=own)) as jobs:
        assert jobs.read("core/own_prices.json") == b"{}"


def submitted(recorded: Recorded) -> dict[str, str]:
    """Return the settings that the deployed job is submitted with."""
    job = json.loads(recorded.outputs["report_job"])
    words = job["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"].split()
    return dict(word.split("=", 1) for word in words if word != "--conf")


def analytics() -> Recorded:
    references = {"test-operations": {"incidents_bucket": INCIDENTS}}
    return programs.run_layer("analytics", programs.description(metrics={}), references)


def test_python_packages_stand_beside_the_code_and_are_unpacked_for_emrs_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = {
        name: tmp_path / f"{name[0]}0" / f"{name}-1-cp311-x.whl" for name in ("numpy", "pyarrow")
    }
    for path in wheels.values():
        path.parent.mkdir()
        path.write_bytes(b"")
    monkeypatch.setattr(report_job, "fetch_wheels", lambda: wheels)
    recorded = analytics()
    keys = {each.inputs["key"] for each in recorded.of("s3/bucketObjectv2:BucketObjectv2")}
    assert {"code/n0/numpy-1-cp311-x.zip", "code/p0/pyarrow-1-cp311-x.zip"} <= keys
    settings = submitted(recorded)
    code = f"s3://{BUCKET}/code"
    assert settings["spark.archives"] == (
        f"{code}/n0/numpy-1-cp311-x.zip#package-numpy-cp311,"
        f"{code}/p0/pyarrow-1-cp311-x.zip#package-pyarrow-cp311"
    )
    # The worker stays EMR's own, and its Pythons have room beside Java.
    java, beside = settings["spark.executor.memory"], settings["spark.executor.memoryOverhead"]
    assert int(java.removesuffix("g")) + int(beside.removesuffix("g")) == 16


def test_up_goes_on_without_packages_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_fetched() -> dict[str, Path]:
        raise report_job.WheelsNotFetched("pip found no pyarrow.")

    warned: list[str] = []
    monkeypatch.setattr(report_job, "fetch_wheels", not_fetched)
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    settings = submitted(analytics())
    assert "spark.submit.pyFiles" in settings
    assert not [name for name in settings if "archives" in name or "executor.memory" in name]
    (sentence,) = warned
    assert sentence.startswith("pip found no pyarrow. No report runs on EMR without them")


RBAC = "rbac.authorization.k8s.io/v1:"
OUTPUTS: dict[str, dict[str, object]] = {
    "test-foundation": {
        "eks_endpoint": "https://eks.example",
        "eks_ca": "Y2E=",
        "vpc_id": "vpc-1",
        "cluster_security_group_id": "sg-1",
    },
    "test-platform": {
        "events_queue_arn": "arn:events",
        "nth_queue_arn": "arn:nth",
        "nth_queue_url": "https://nth",
    },
    "test-kafka": {"load_balancer_security_group_id": "sg-2", "bootstrap": "127.0.0.1:10010"},
}


WORKSPACE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d"


def operations(prometheus: str | None = None, **volumes: object) -> Recorded:
    metrics = {"prometheus": {"address": prometheus}} if prometheus else {}
    raw = description(volumes=volumes, metrics=metrics)
    zones = {z: f"subnet-{z}" for z in raw["availability_zones"]}
    foundation = {**OUTPUTS["test-foundation"], "private_subnet_ids": zones}
    return run_layer("operations", raw, {**OUTPUTS, "test-foundation": foundation})


@pytest.mark.parametrize(
    ("volumes", "verbs"),
    [
        ({}, ["list"]),
        ({"mode": "apply", "max_monthly_increase_usd": 50}, ["list", "patch"]),
    ],
)
def test_in_the_cluster_it_patches_node_pools_alone_and_only_where_it_applies(
    volumes: dict[str, object], verbs: list[str]
) -> None:
    recorded = operations(**volumes)
    inside = recorded.one(f"{RBAC}Role", "volumes-access-role").inputs["rules"]
    everywhere = recorded.one(f"{RBAC}ClusterRole", "volumes-access-cluster-role").inputs["rules"]
    granted = {r["resources"][0]: r["verbs"] for r in (*inside, *everywhere)}
    assert granted == {
        "persistentvolumeclaims": ["list"],
        "kafkanodepools": verbs,
        "kafkas": ["get"],
        "secrets": ["get"],
        "persistentvolumes": ["list"],
        "volumeattributesclasses": ["list"],
    }


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
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (
        ["services/proxy"],
        ["prometheus-operated:9090"],
        ["get"],
    )


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
    assert read.prometheus is not None
    assert read.prometheus.labels == {"cluster": "prod"}
    voters = [pool for pool in described.pools if not pool.role.is_broker]
    assert len(_performances(voters, may_change=True)) == 1


def test_classes_are_made_for_what_may_be_chosen_and_only_where_it_may() -> None:
    described = spec()
    made = _performances(described.pools, may_change=False)
    assert set(made) == {"gp3-4000-140"}
    changing = _performances(described.pools, may_change=True)
    assert set(changing) == {"gp3-4000-140", "gp3-6000-140", "gp3-4000-149", "gp3-6000-149"}
