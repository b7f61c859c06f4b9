"""The handlers' AWS adapters on the twin's AWS: hooks that wait and end, writes that race."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.credentials import ReadOnlyCredentials

from core.ground.errors import Conflict
from core.incidents.actions import HookResult
from core.incidents.joining import open_incident
from core.incidents.observation import cluster_ownership
from handlers.adapters.aws import AwsCloud, Queue
from handlers.store.ledger import Ledger
from local import environment
from tests.unit.core.incidents.announced_incidents import announcement
from tests.unit.handlers.tables import make_table

pytestmark = pytest.mark.integration
WRITERS = 12
TAG = "aws-node-termination-handler/local-orders"


@pytest.fixture(autouse=True)
def pointed_at_the_twin(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    credentials: ReadOnlyCredentials = cloud.session.get_credentials().get_frozen_credentials()
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.place.url("moto"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", credentials.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", credentials.secret_key)


def test_a_hook_is_kept_waiting_and_completed_once(cloud: Any) -> None:
    group = cloud.group(
        cloud.network(),
        "drain",
        "gate",
        Tags=[{"Key": TAG, "Value": "true", "PropagateAtLaunch": True}],
    )
    (instance,) = cloud.members(group)
    aws = AwsCloud(environment.REGION)
    assert not aws.heartbeat(group, "gate", instance, None)
    cloud.terminate(instance)
    assert aws.heartbeat(group, "drain", instance, None)
    assert not aws.heartbeat(group, "drain", instance, "00000000-0000-0000-0000-000000000000")
    assert aws.complete_hook(group, "drain", instance, None, HookResult.CONTINUE)
    assert not aws.complete_hook(group, "drain", instance, None, HookResult.CONTINUE)
    seen = aws.group(group)
    assert seen is not None
    assert seen.instances[instance] == "Terminating:Wait"
    assert group in {found.name for found in aws.groups_of(cluster_ownership("local-orders"))}
    view = aws.instance(instance)
    assert view is not None
    assert (view.group, view.state) == (group, "running")
    assert TAG in view.tags
    assert aws.complete_hook(group, "gate", instance, None, HookResult.CONTINUE)
    cloud.eventually(lambda: instance not in cloud.members(group))


def test_a_message_arrives_after_its_delay(cloud: Any) -> None:
    url = cloud.queue()
    Queue(url, environment.REGION).send("tick", delay_seconds=1)
    assert "Messages" not in cloud.sqs.receive_message(QueueUrl=url)
    answer = cloud.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)
    assert [message["Body"] for message in answer["Messages"]] == ["tick"]


@pytest.fixture
def ledger(cloud: Any) -> Ledger:
    table = cloud.name("incidents")
    make_table(cloud.dynamodb, table)
    cloud.later(cloud.dynamodb.delete_table, TableName=table)
    return Ledger(table, "orders", environment.REGION)


def at_once(write: Callable[[int], bool]) -> int:
    """Run a write from many threads; return how many of them won."""
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(write, range(WRITERS)))


def test_of_many_who_ask_for_the_lease_at_once_one_gets_it(ledger: Ledger) -> None:
    assert at_once(lambda n: ledger.take_lease(f"i-{n}", 100.0, 60).granted) == 1


def test_of_many_who_open_an_incident_at_once_one_does(ledger: Ledger) -> None:
    found = announcement(hook="drain", instance_id="i-0a")

    def write(_: int) -> bool:
        try:
            ledger.put(open_incident(found, 1.0))
        except Conflict:
            return False
        return True

    assert at_once(write) == 1
    assert [i.id for i in ledger.open_incidents()] == ["i-0a"]
