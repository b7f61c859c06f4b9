"""Queues keep AWS's promises under many hands; mappings poll."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.integration

RECORDING = (
    "seen = {}\n"
    "def handler(event, context):\n"
    "    failures = []\n"
    "    for record in event['Records']:\n"
    "        body = record['body']\n"
    "        seen[body] = seen.get(body, 0) + 1\n"
    "        print('saw', body, record['attributes']['ApproximateReceiveCount'])\n"
    "        if body == 'bad' or (body == 'once' and seen[body] == 1):\n"
    "            failures.append({'itemIdentifier': record['messageId']})\n"
    "    return {'batchItemFailures': failures}\n"
)


def test_a_message_goes_to_one_receiver(cloud: Any) -> None:
    queue = cloud.queue(VisibilityTimeout="60")
    for number in range(100):
        cloud.sqs.send_message(QueueUrl=queue, MessageBody=str(number))

    def receive(_: int) -> list[str]:
        bodies: list[str] = []
        while messages := cloud.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=3).get(
            "Messages"
        ):
            bodies += [message["Body"] for message in messages]
        return bodies

    with ThreadPoolExecutor(8) as pool:
        received = Counter(body for bodies in pool.map(receive, range(8)) for body in bodies)
    assert received == Counter(str(number) for number in range(100))


def mapped(cloud: Any, queue: str, **settings: Any) -> tuple[str, str]:
    # A loaded machine may hold a process for seconds; a function that is killed has seen nothing.
    function = cloud.function(RECORDING, timeout=5)
    mapping = cloud.client("lambda").create_event_source_mapping(
        **{
            "FunctionName": function,
            "EventSourceArn": cloud.queue_arn(queue),
            "BatchSize": 10,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            **settings,
        }
    )
    cloud.later(cloud.client("lambda").delete_event_source_mapping, UUID=mapping["UUID"])
    return function, mapping["UUID"]


def saw(cloud: Any, function: str) -> list[str]:
    log = cloud.place.path("logs", f"lambda-{function}.log")
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.removeprefix("saw ") for line in lines if line.startswith("saw ")]


@pytest.mark.long
def test_a_failed_record_comes_back_alone_and_ends_in_the_dead_letters(cloud: Any) -> None:
    dead = cloud.queue()
    queue = cloud.queue(
        VisibilityTimeout="5",
        # Room for a delivery that a busy machine answers too late: only what always fails goes.
        RedrivePolicy=f'{{"deadLetterTargetArn": "{cloud.queue_arn(dead)}", "maxReceiveCount": 4}}',
    )
    function, _ = mapped(cloud, queue)
    for body in ("good", "once", "bad"):
        cloud.sqs.send_message(QueueUrl=queue, MessageBody=body)
    (letter,) = cloud.eventually(lambda: cloud.sqs.receive_message(QueueUrl=dead).get("Messages"))
    assert letter["Body"] == "bad"
    deliveries = Counter(line.split()[0] for line in saw(cloud, function))
    assert deliveries["bad"] > deliveries["once"] > 1
    assert deliveries["bad"] > deliveries["good"] > 0


def test_a_disabled_mapping_leaves_its_queue_alone(cloud: Any) -> None:
    queue = cloud.queue(VisibilityTimeout="5")
    function, uuid = mapped(cloud, queue, Enabled=False)
    cloud.sqs.send_message(QueueUrl=queue, MessageBody="good")
    (message,) = cloud.sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0)["Messages"]
    assert (message["Body"], saw(cloud, function)) == ("good", [])
    cloud.client("lambda").update_event_source_mapping(UUID=uuid, Enabled=True)
    cloud.eventually(lambda: saw(cloud, function))


def test_a_queue_that_shows_messages_before_the_function_may_end_is_refused(cloud: Any) -> None:
    queue = cloud.queue(VisibilityTimeout="0")
    with pytest.raises(ClientError, match="less than Function timeout"):
        mapped(cloud, queue)
