"""A queue that feeds a function, on the clock of the case: real messages, receipts and redrives."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handlers.adapters.aws import Queue
from local import environment
from tests.integration.aws.cloud import Cloud

# ClusterSpec's queue_visibility_timeout_seconds: when a message that failed is shown again.
VISIBILITY_SECONDS = 360.0
# For as long as no test lasts, in which SQS itself shows nothing again.
HIDDEN_SECONDS = 40_000
Post = Callable[[str], list[float]]


def delivery_times(body: str) -> list[float]:
    """Return when a message is delivered that nothing happens to: once, at once."""
    del body
    return [0.0]


@dataclass
class Feed:
    """One queue and its dead letters; `post` says of each new message when it is delivered."""

    cloud: Cloud
    most_receives: int
    post: Post = delivery_times
    lost: int = 0
    waiting: list[tuple[float, str, Any]] = field(default_factory=list)
    _failed: list[tuple[float, Any]] = field(default_factory=list)
    _delays: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.dead_letters = self.cloud.queue()
        redrive = {
            "deadLetterTargetArn": self.cloud.queue_arn(self.dead_letters),
            "maxReceiveCount": str(self.most_receives),
        }
        self.url = self.cloud.queue(RedrivePolicy=json.dumps(redrive))
        self._adapter = Queue(self.url, environment.REGION)

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Send as the handlers do; the delay passes on the clock of the case."""
        self._delays[body].append(delay_seconds)
        self._adapter.send(body)

    def take(self, now: float) -> list[Any]:
        """Return the messages that are due, each as often as it is delivered."""
        self._show_again(now)
        self._receive(now)
        due = [entry for entry in self.waiting if entry[0] <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        return [message for _, _, message in sorted(due, key=lambda entry: entry[0])]

    def done(self, message: Any) -> None:
        self.cloud.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def failed(self, message: Any, now: float) -> None:
        """Leave a message in the queue: SQS shows it again, or puts it among the dead letters."""
        self._failed.append((now + VISIBILITY_SECONDS, message))

    def next_at(self) -> float:
        """Return when the next message is due, if SQS has shown it already."""
        due = [at for at, _, _ in self.waiting] + [at for at, _ in self._failed]
        return min(due, default=math.inf)

    @property
    def quiet(self) -> bool:
        return not self.waiting and not self._failed

    def dead(self) -> list[str]:
        """Return the bodies of the dead letters, and take them out."""
        answer = self.cloud.sqs.receive_message(QueueUrl=self.dead_letters, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            self.cloud.sqs.delete_message(
                QueueUrl=self.dead_letters, ReceiptHandle=message["ReceiptHandle"]
            )
        return [str(message["Body"]) for message in answer.get("Messages", [])]

    def _show_again(self, now: float) -> None:
        for at, message in list(self._failed):
            if now >= at:
                self._failed.remove((at, message))
                self.cloud.sqs.change_message_visibility(
                    QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
                )

    def _receive(self, now: float) -> None:
        while True:
            answer = self.cloud.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=HIDDEN_SECONDS,
                AttributeNames=["ApproximateReceiveCount"],
            )
            messages = answer.get("Messages", [])
            for message in messages:
                self._schedule(message, now)
            if len(messages) < 10:  # what was asked for
                return

    def _schedule(self, message: Any, now: float) -> None:
        body = str(message["Body"])
        if message["Attributes"]["ApproximateReceiveCount"] != "1":
            self.waiting.append((now, body, message))
            return
        delays = self._delays.pop(body, [0.0])
        if len(delays) > 1:
            self._delays[body] = delays[1:]
        posted = self.post(body)
        if not posted:
            self.lost += 1
            self.done(message)
        for late in posted:
            self.waiting.append((now + delays[0] + late, body, message))
