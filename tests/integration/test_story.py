"""What is told of a real rotation: NTH's report, the Slack thread, the line in the archive."""

import json
from typing import Any

import pytest
import urllib3

from core.incidents.record import Incident, State
from local.demo import rotation as demo
from tests.integration.cluster import Cluster
from tests.integration.waiting import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
WEBHOOK = "aws-node-termination-handler-webhook"


@pytest.fixture
def incident(cluster: Cluster) -> Incident:
    """A broker's node that was drained and let go, at this moment."""
    rotation = demo.terminate(cluster.twin)
    return cluster.released(rotation.instance_id)


def objects(cluster: Cluster) -> list[str]:
    found = cluster.twin.aws("s3").list_objects_v2(Bucket=str(cluster.outputs["incidents_bucket"]))
    return [str(each["Key"]) for each in found.get("Contents", [])]


def history(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the heads in the twin's Slack, as its API lists them."""
    answer = urllib3.request(
        "GET",
        f"{cluster.twin.place.url('slack')}/api/conversations.history",
        fields={"channel": "C0HARBOUR1"},
        headers={"Authorization": "Bearer xoxb-twin"},
        timeout=PATIENCE_SECONDS,
    )
    return list(answer.json()["messages"])


@pytest.mark.long
def test_a_rotation_is_reported_told_and_filed(cluster: Cluster, incident: Incident) -> None:
    assert incident.state is State.RELEASED
    # NTH's own binary posted it, with the token from its Secret.
    reports = [note for note in incident.notes if note.actor == "nth"]
    assert len(reports) == 1
    assert incident.node_name is not None
    assert incident.node_name in reports[0].reason

    (head,) = until(
        lambda: [
            message
            for message in history(cluster)
            if incident.instance_id in json.dumps(message) and "released" in message["text"]
        ],
        "the thread says how it ended",
    )
    page = demo.slack_page(cluster.twin)
    assert "NTH has ended its attempt to drain" in page
    assert f"broker {incident.node_id}" in head["text"]

    def filed() -> list[str]:
        return [key for key in objects(cluster) if key.endswith(f"/{incident.id}.jsonl")]

    (key,) = until(filed, "the sweep files the incident")
    body = (
        cluster.twin.aws("s3")
        .get_object(Bucket=str(cluster.outputs["incidents_bucket"]), Key=key)["Body"]
        .read()
    )
    assert json.loads(body)["transitions"][-1]["state"] == "released"

    def closed() -> dict[str, Any] | None:
        item = cluster.twin.aws("dynamodb").get_item(
            TableName=str(cluster.outputs["ledger_table"]),
            Key={"pk": {"S": f"incident#{incident.id}"}},
        )["Item"]
        return item if "open" not in item else None

    # The ledger lets go of it after S3 holds it, never before.
    item = until(closed, "the ledger lets go of what is filed")
    assert int(item["expires_at"]["N"]) > incident.entered_at
