"""Calls a person: a count for the alarm, a line of the log, and a message to everybody who listens.

The alarm alone would lose calls: it acts when it goes into ALARM, so a second page while it is
there reaches nobody. So each page also goes to the ticks queue, and λ tick publishes it on the
topic of the alerts. A page that cannot be published comes again, and then lies among the dead
letters, which have an alarm of their own. One that is delivered twice is told twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import boto3
from aws_lambda_powertools import Logger

from core.ground.constants import PAGES_SENT
from core.incidents.actions import runbook
from handlers.adapters import metrics
from handlers.adapters.aws import Queue

logger = Logger(service="stillwater", child=True)


# SNS's own limit of a subject, which is ASCII without line breaks.
LONGEST_SUBJECT = 100


class Topic:
    """One SNS topic: everybody who listens."""

    def __init__(self, arn: str, region: str) -> None:
        self._arn = arn
        self._sns = boto3.client("sns", region_name=region)

    def publish(self, subject: str, text: str) -> None:
        """Tell everybody who listens; raises ClientError when that is refused."""
        self._sns.publish(TopicArn=self._arn, Subject=subject, Message=text)


def call(ticks: Queue, reason: str, *, page: str, **about: str | None) -> None:
    """Call a person about `page`; raises ClientError when the queue takes no message."""
    metrics.count(PAGES_SENT)
    known = {"page": page, **{key: value for key, value in about.items() if value is not None}}
    logger.critical(reason, extra=known)
    ticks.send(json.dumps({**known, "reason": reason}))


def publish(topic: Topic | None, message: Mapping[str, str], runbooks_url: str) -> None:
    """Publish what `call` has sent; without a topic the count and the log are all there is."""
    if topic is None:
        return
    shown = {**message, "runbook": runbook(message["page"], runbooks_url)}
    about = "\n".join(f"{key}: {value}" for key, value in shown.items() if key != "reason")
    subject = f"Stillwater: {message['page']}"
    plain = subject.encode("ascii", "replace").decode()[:LONGEST_SUBJECT]
    topic.publish(plain, f"{message['reason']}\n\n{about}\n")
