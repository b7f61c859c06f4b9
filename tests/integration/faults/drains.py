"""The node termination handler, modelled on its queue: cordon, evict, complete the drain hook.

It remembers in memory which announcements it works on, and deletes a message when its drain is
done; killed, it forgets, and SQS shows the message again after its visibility timeout.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.integration.faults.machinery import Machinery

VISIBILITY_SECONDS = 110.0


@dataclass
class TerminationHandler:
    machinery: Machinery
    url: str
    alive: bool = True
    drained: list[str] = field(default_factory=list)  # instances, each time one was cordoned
    _known: set[str] = field(default_factory=set)
    _work: list[tuple[dict[str, Any], Any]] = field(default_factory=list)
    _hidden: list[tuple[float, Any]] = field(default_factory=list)

    def kill(self) -> None:
        """End it in the middle of whatever it does; its messages come back later."""
        self.alive = False
        self._known.clear()
        self._work.clear()

    def start(self) -> None:
        self.alive = True

    def expire(self) -> None:
        """Drop what waits: the queue's retention is over, which SQS counts by another clock."""
        self.machinery.cloud.sqs.purge_queue(QueueUrl=self.url)
        self._hidden.clear()

    @property
    def busy(self) -> bool:
        return bool(self._work)

    def act(self, now: float) -> None:
        """Take new messages, and go on with every drain as far as the cluster lets it."""
        sqs = self.machinery.cloud.sqs
        for at, message in list(self._hidden):
            if now >= at:
                self._hidden.remove((at, message))
                with contextlib.suppress(ClientError):  # It was deleted when its drain was done.
                    sqs.change_message_visibility(
                        QueueUrl=self.url,
                        ReceiptHandle=message["ReceiptHandle"],
                        VisibilityTimeout=0,
                    )
        if not self.alive:
            return
        for message in _receive_all(sqs, self.url):
            self._hidden.append((now + VISIBILITY_SECONDS, message))
            event = json.loads(message["Body"])
            id_ = str(event.get("id") or event.get("RequestId"))
            if id_ not in self._known:
                self._known.add(id_)
                self._work.append((event.get("detail", event), message))
        if self.machinery.api_answers:
            self._work = [work for work in self._work if not self._finished(*work, now=now)]

    def _finished(self, detail: dict[str, Any], message: Any, *, now: float) -> bool:
        instance_id = str(detail.get("EC2InstanceId") or detail.get("instance-id"))
        node = self.machinery.node(instance_id)
        if node is not None and node.schedulable:
            self.machinery.cordon(instance_id)
            self.drained.append(instance_id)
        pods = [
            id_
            for id_, pod in self.machinery.cluster.pods.items()
            if node is not None and pod.node_name == node.name
        ]
        for node_id in pods:
            self.machinery.evict(node_id, now)
        if pods:
            return False
        if "LifecycleHookName" in detail:
            with contextlib.suppress(ClientError):  # Somebody else has completed it.
                self.machinery.cloud.autoscaling.complete_lifecycle_action(
                    AutoScalingGroupName=detail["AutoScalingGroupName"],
                    LifecycleHookName=detail["LifecycleHookName"],
                    LifecycleActionToken=detail["LifecycleActionToken"],
                    LifecycleActionResult="CONTINUE",
                    InstanceId=instance_id,
                )
        self.machinery.cloud.sqs.delete_message(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"]
        )
        return True


def _receive_all(sqs: Any, url: str) -> list[Any]:
    # Hidden for longer than any test lasts: messages come back by the clock of the case alone.
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=40_000)
    return list(answer.get("Messages", []))
