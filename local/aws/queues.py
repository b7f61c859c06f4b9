"""SQS in the twin: a message goes to one receiver at a time, and Lambda polls queues as AWS does.

moto picks and marks a message in two steps without a lock, so two receivers in two threads can
get the same one (seen once in 600), and its long poll looks once a second. It invokes a mapping's
function inside the sender's send_message, one record at a time, and ignores
ReportBatchItemFailures. Here each enabled mapping has pollers. What a function failed on stays
invisible until the queue's visibility timeout has passed, comes back, and ends in the dead-letter
queue once it was received maxReceiveCount times.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable
from typing import Any

from moto.awslambda.exceptions import InvalidParameterValueException
from moto.awslambda.models import LambdaBackend, lambda_backends
from moto.sqs.models import SQSBackend, sqs_backends

from local.aws import lambdas
from local.aws.instances import all_backends
from local.aws.lambdas import InvokedFunctions, find

POLL_SECONDS = 0.1


def install_queues() -> None:
    """Serialise each queue on its own lock."""
    moto_receive = SQSBackend.receive_message
    moto_delete = SQSBackend.delete_message
    moto_change = SQSBackend.change_message_visibility

    def receive_message(  # moto's signature
        backend: Any,
        queue_name: str,
        count: int,
        wait_seconds_timeout: int,
        visibility_timeout: int,
        message_attribute_names: list[str] | None = None,
    ) -> list[Any]:
        queue = backend.get_queue(queue_name)
        deadline = time.monotonic() + (wait_seconds_timeout or 0)
        while True:
            with queue._messages_lock:  # noqa: SLF001  # the queue's own, re-entrant
                found: list[Any] = moto_receive(
                    backend, queue_name, count, 0, visibility_timeout, message_attribute_names
                )
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                # Delayed messages become visible without a word, so nothing but looking helps.
                queue._messages_lock.wait(min(left, POLL_SECONDS))  # noqa: SLF001  # as above

    def delete_message(backend: Any, queue_name: str, receipt_handle: str) -> None:
        with backend.get_queue(queue_name)._messages_lock:  # noqa: SLF001  # as above
            moto_delete(backend, queue_name, receipt_handle)

    def change_message_visibility(
        backend: Any, queue_name: str, receipt_handle: str, visibility_timeout: int
    ) -> None:
        with backend.get_queue(queue_name)._messages_lock:  # noqa: SLF001  # as above
            moto_change(backend, queue_name, receipt_handle, visibility_timeout)

    SQSBackend.receive_message = receive_message
    SQSBackend.delete_message = delete_message
    SQSBackend.change_message_visibility = change_message_visibility


LOG = logging.getLogger(__name__)
# Lambda begins with five pollers per queue.
POLLERS_PER_MAPPING = 2
LARGEST_RECEIVE = 10
WAIT_SECONDS = 1
LOOK_SECONDS = 0.2
# How long a role that was let in is not asked again.
JUDGED_SECONDS = 5.0
PARTIAL = "ReportBatchItemFailures"


def failed_ids(
    ids: Iterable[str], answer: bytes | None, *, error: bool, partial: bool
) -> frozenset[str]:
    """Return the messages of a batch that stay in the queue, by what the function answered.

    With partial responses, an empty or absent list of failures means that all went well; an answer
    Lambda cannot read, or an id it never sent, means that all failed.
    """
    everything = frozenset(ids)
    if error:
        return everything
    if not partial:
        return frozenset()
    named = _named_failures(answer)
    return named if named is not None and named <= everything else everything


def _named_failures(answer: bytes | None) -> frozenset[str] | None:
    """Return the ids an answer names as failed, or None for an answer Lambda cannot read."""
    try:
        failures = (json.loads(answer or b"null") or {"batchItemFailures": []})["batchItemFailures"]
        return frozenset(str(entry["itemIdentifier"]) for entry in failures or [])
    except (ValueError, TypeError, KeyError):
        return None


def record_of(message: Any, queue_arn: str, region: str) -> dict[str, Any]:
    """Return a message as a function receives it."""
    attributes = {
        "ApproximateReceiveCount": str(message.approximate_receive_count),
        "SentTimestamp": str(message.sent_timestamp),
        "SenderId": message.sender_id,
        "ApproximateFirstReceiveTimestamp": str(message.approximate_first_receive_timestamp),
    }
    optional = {
        "MessageGroupId": message.group_id,
        "MessageDeduplicationId": message.deduplication_id,
        "SequenceNumber": message.sequence_number,
    }
    attributes |= {name: value for name, value in optional.items() if value is not None}
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": {
            name: {
                "stringValue": value.get("StringValue"),
                "dataType": value.get("DataType"),
                "stringListValues": [],
                "binaryListValues": [],
            }
            for name, value in message.message_attributes.items()
        },
        "md5OfBody": message.body_md5,
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": region,
    }


class Poller:
    """Feeds one mapping's function from its queue until the mapping is disabled or deleted."""

    def __init__(self, mapping: Any, functions: InvokedFunctions) -> None:
        self._mapping = mapping
        self._functions = functions
        self._stopped = threading.Event()
        self._judged_at = float("-inf")
        for number in range(self._count()):
            threading.Thread(
                target=self._run, name=f"mapping-{mapping.uuid[:8]}-{number}", daemon=True
            ).start()

    def _count(self) -> int:
        if self._mapping.event_source_arn.endswith(".fifo"):
            return 1
        most = (self._mapping.scaling_config or {}).get("MaximumConcurrency")
        return min(POLLERS_PER_MAPPING, int(most or POLLERS_PER_MAPPING))

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._poll()
            except Exception:
                LOG.exception("mapping %s cannot poll", self._mapping.uuid)
                self._stopped.wait(WAIT_SECONDS)

    def _poll(self) -> None:
        region, account, name = self._mapping.event_source_arn.split(":")[3:6]
        backend = sqs_backends[account][region]
        function = find(self._mapping.function_arn)
        if name not in backend.queues or function is None or not self._may_poll(function):
            self._stopped.wait(WAIT_SECONDS)
            return
        messages = self._receive(backend, name)
        function = find(self._mapping.function_arn)
        if not messages or function is None:
            return
        event = {
            "Records": [record_of(m, self._mapping.event_source_arn, region) for m in messages]
        }
        outcome = self._functions.invoke(function, json.dumps(event).encode())
        kept = failed_ids(
            [message.id for message in messages],
            outcome.payload,
            error=outcome.error_type is not None,
            partial=PARTIAL in (self._mapping.function_response_types or []),
        )
        if kept:
            LOG.warning("%s left %d message(s) in %s", function.function_name, len(kept), name)
        for message in messages:
            if message.id not in kept:
                backend.delete_message(name, message.receipt_handle)

    def _may_poll(self, function: Any) -> bool:
        """Say whether the function's role lets Lambda at the queue."""
        if time.monotonic() - self._judged_at < JUDGED_SECONDS:
            return True
        calls = lambdas.polling_calls(self._mapping.event_source_arn)
        guard, name = self._functions.guard, function.function_name
        if lambdas.first_refused_call(guard, function.role, name, calls) is not None:
            return False
        self._judged_at = time.monotonic()
        return True

    def _receive(self, backend: Any, name: str) -> list[Any]:
        """Receive one batch: what is there, or what comes within the batching window."""
        queue = backend.get_queue(name)
        size = int(self._mapping.batch_size)
        closes = time.monotonic() + float(self._mapping.max_batch_window or 0)
        messages: list[Any] = []
        while not self._stopped.is_set() and len(messages) < size:
            messages += backend.receive_message(
                name,
                min(LARGEST_RECEIVE, size - len(messages)),
                WAIT_SECONDS,
                queue.visibility_timeout,
                ["All"],
            )
            if not messages or time.monotonic() >= closes:
                break
        return messages


class Mappings:
    """Keeps one poller per enabled SQS mapping."""

    def __init__(self, functions: InvokedFunctions) -> None:
        self._functions = functions
        self._pollers: dict[str, Poller] = {}

    def look(self) -> None:
        """Follow what the API says about mappings."""
        wanted = {
            mapping.uuid: mapping
            for backend in all_backends(lambda_backends)
            for mapping in list(backend._event_source_mappings.values())  # noqa: SLF001  # moto keeps them there
            if mapping.enabled and ":sqs:" in mapping.event_source_arn
        }
        for uuid in [uuid for uuid in self._pollers if uuid not in wanted]:
            self._pollers.pop(uuid).stop()
        for uuid, mapping in wanted.items():
            if uuid not in self._pollers:
                self._pollers[uuid] = Poller(mapping, self._functions)

    def stop(self) -> None:
        for poller in self._pollers.values():
            poller.stop()


def install_mappings(functions: InvokedFunctions) -> Mappings:
    """Take SQS mappings away from moto; return the ones whose rounds somebody does."""
    moto_create = LambdaBackend.create_event_source_mapping

    def create_event_source_mapping(backend: Any, spec: dict[str, Any]) -> Any:
        mapping = moto_create(backend, spec)
        region, account, name = mapping.event_source_arn.split(":")[3:6]
        queue = sqs_backends[account][region].queues.get(name)
        if queue is None:
            return mapping
        queue.lambda_event_source_mappings.clear()
        function = find(mapping.function_arn)
        try:
            _check_feeding(queue, function, mapping)
        except InvalidParameterValueException:
            backend.delete_event_source_mapping(mapping.uuid)
            raise
        return mapping

    def _check_feeding(queue: Any, function: Any, mapping: Any) -> None:
        if queue.visibility_timeout < float(function.timeout):
            raise InvalidParameterValueException(
                f"Queue visibility timeout: {queue.visibility_timeout} seconds is less than "
                f"Function timeout: {function.timeout} seconds"
            )
        polling = lambdas.polling_calls(mapping.event_source_arn)
        lambdas.check_role(functions.guard, function.role, function.function_name, polling)

    LambdaBackend.create_event_source_mapping = create_event_source_mapping
    return Mappings(functions)
