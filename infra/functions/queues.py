"""An SQS queue with its dead letters: what cannot be handled is kept and alarmed on, never lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster.operated import Operated
from core.constants import DEAD_LETTER_RETENTION_SECONDS
from infra import iam

TYPE = "stillwater:infra:Queue"


@dataclass(frozen=True, kw_only=True)
class QueueArgs:
    queue_name: str
    visibility_timeout_seconds: int
    retention_seconds: int
    max_receive_count: int
    # EventBridge rules that may send.
    rule_arns: Sequence[pulumi.Input[str]] = ()
    # Roles that may send as well, by ARN patterns: what arrives is believed, so that nobody else
    # may, whatever rights a role gives. None: who has the right.
    senders: Sequence[str] | None = ()


class MessageQueue(pulumi.ComponentResource):
    """A queue encrypted with SQS's own keys, spoken to over TLS only; so are its dead letters."""

    arn: pulumi.Output[str]
    dead_letters_arn: pulumi.Output[str]
    url: pulumi.Output[str]
    # What must stand before a rule may send; without it events vanish silently.
    policies: Sequence[aws.sqs.QueuePolicy]

    def __init__(
        self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        dead_letters = aws.sqs.Queue(
            f"{name}-dead-letters",
            name=naming.dead_letter_queue(args.queue_name),
            message_retention_seconds=DEAD_LETTER_RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            opts=child,
        )
        queue = aws.sqs.Queue(
            f"{name}-queue",
            name=args.queue_name,
            visibility_timeout_seconds=args.visibility_timeout_seconds,
            message_retention_seconds=args.retention_seconds,
            receive_wait_time_seconds=20,
            sqs_managed_sse_enabled=True,
            redrive_policy=pulumi.Output.json_dumps(
                {
                    "deadLetterTargetArn": dead_letters.arn,
                    "maxReceiveCount": args.max_receive_count,
                }
            ),
            opts=child,
        )
        self.policies = [
            aws.sqs.QueuePolicy(
                f"{name}-{key}",
                queue_url=each.url,
                policy=iam.document(_statements(each.arn, args.rule_arns, senders)),
                opts=child,
            )
            for key, each, senders in (
                ("policy", queue, args.senders),
                # SQS itself and EventBridge fill it; a person looks before anything is moved back.
                ("dead-letters-policy", dead_letters, None),
            )
        ]
        self.arn, self.url = queue.arn, queue.url
        self.dead_letters_arn = dead_letters.arn
        self.register_outputs({"arn": self.arn, "url": self.url})


def work_queue(
    name: str,
    cluster: Operated,
    role: str,
    max_receive_count: int,
    senders: Sequence[str] | None,
    parent: pulumi.Resource,
) -> MessageQueue:
    """Return a queue of what our own functions send each other."""
    timings = cluster.timings
    args = QueueArgs(
        queue_name=naming.queue(cluster.prefix, role),
        visibility_timeout_seconds=timings.queue_visibility_timeout_seconds,
        retention_seconds=timings.events_queue_retention_seconds,
        max_receive_count=max_receive_count,
        senders=senders,
    )
    return MessageQueue(name, args, opts=pulumi.ResourceOptions(parent=parent))


def _statements(
    queue_arn: pulumi.Output[str],
    rule_arns: Sequence[pulumi.Input[str]],
    senders: Sequence[str] | None,
) -> list[dict[str, Any]]:
    statements = [iam.only_over_tls("sqs:*", [queue_arn])]
    if rule_arns:
        statements.append(
            {
                "Sid": "OurRulesMaySend",
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": [queue_arn],
                "Condition": {"ArnEquals": {"aws:SourceArn": list(rule_arns)}},
            }
        )
    if senders is not None:
        # Also true of a request that names no source or principal.
        known = {"aws:SourceArn": list(rule_arns), "aws:PrincipalArn": list(senders)}
        statements.append(
            {
                "Sid": "NobodyElseMaySend",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:SendMessage",
                "Resource": [queue_arn],
                "Condition": {
                    "ArnNotLike": {key: arns for key, arns in known.items() if arns},
                    # SQS itself sends when a person has dead letters moved back.
                    "BoolIfExists": {"aws:ViaAWSService": "false"},
                },
            }
        )
    return statements
