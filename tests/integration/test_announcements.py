"""Announcements through the deployed rules: EventBridge, queue, λ interruption, the ledger."""

import json
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from core.ground import naming
from core.incidents.observation import CLAIM_TAG
from core.zones.incident import ZoneIncident, ZoneState
from handlers.store.documents import Freezes
from handlers.store.table import Records
from local import environment
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster
from tests.unit.core.zones.health_issues import issue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
PREFIX = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"


def recorded(cluster: Cluster, *parts: str) -> str | None:
    """Return the outcome of the announcement whose key or body has all these parts."""
    pages = cluster.twin.aws("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=cluster.outputs["ledger_table"]):
        for item in page["Items"]:
            key, body = item["pk"]["S"], item.get("body", {}).get("S", "")
            if key.startswith(("event#", "ignored#")) and all(p in key + body for p in parts):
                return str(item["outcome"]["S"])
    return None


def freezes(cluster: Cluster) -> Freezes:
    records = Records(
        str(cluster.outputs["ledger_table"]),
        environment.REGION,
        client=cluster.twin.aws("dynamodb"),
    )
    return Freezes(records, demo_spec.CLUSTER)


def test_an_issue_that_nobody_bears_out_freezes_nothing_and_calls_a_person(
    cluster: Cluster,
) -> None:
    arn = f"arn:aws:health:us-east-1::event/EC2/AWS_EC2_OPERATIONAL_ISSUE/{uuid4()}"
    text = f"Power is lost in {cluster.zone_id('us-east-1c').upper()}."

    def told() -> ZoneIncident | None:
        found = (i for i in freezes(cluster).incidents() if i.key == arn)
        return next((i for i in found if "zone_uncorroborated" in i.pages), None)

    now = datetime.now(UTC).isoformat()
    cluster.announce(json.loads(issue(text, at=now, arn=arn)))
    try:
        watched = cluster.until(told, "a person is called")
        assert watched.state is ZoneState.WATCHED
        assert freezes(cluster).current(time.time()) == ()
    finally:
        cluster.announce(json.loads(issue("It is over.", at=now, arn=arn, statusCode="closed")))
    cluster.until(lambda: not any(i.open for i in freezes(cluster).incidents()), "it is over")


def test_a_modified_volume_of_kafkas_is_on_record(cluster: Cluster) -> None:
    ec2 = cluster.twin.aws("ec2")
    # Other tests' claims leave volumes of no cluster behind, and brokers' are counted by theirs.
    mine = [
        {"Name": f"tag:{CLAIM_TAG}", "Values": [f"data-0-{demo_spec.CLUSTER}-controller-b-1"]},
        {"Name": f"tag:{naming.CLUSTER_TAG}", "Values": [demo_spec.CLUSTER]},
        {"Name": f"tag:{naming.ENVIRONMENT_TAG}", "Values": [demo_spec.ENVIRONMENT]},
    ]
    volume = ec2.describe_volumes(Filters=mine)["Volumes"][0]
    ec2.modify_volume(VolumeId=volume["VolumeId"], Iops=volume["Iops"])
    key = f"modification_completed:{volume['VolumeId']}"
    said = cluster.until(lambda: recorded(cluster, key), "its end is recorded")
    assert said == f"Volume {volume['VolumeId']}: modification_completed."


def test_what_the_groups_launched_is_on_record(cluster: Cluster) -> None:
    said = cluster.until(
        lambda: recorded(cluster, f"launched:{PREFIX}-broker-a"), "a launch is recorded"
    )
    assert "Woken:" in said


def test_the_sweep_looks_at_every_kafka_node_and_finds_all_well(cluster: Cluster) -> None:
    cluster.settle()
    answer = cluster.twin.aws("lambda").invoke(FunctionName=f"{PREFIX}-sweep", Payload=b"{}")
    done = json.loads(answer["Payload"].read())
    assert done["looked_at"] >= 6
    assert (done["opened"], done["revived"]) == (0, 0)
