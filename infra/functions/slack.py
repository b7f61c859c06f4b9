"""How incidents reach Slack: a queue of their own, and λ slack, which alone knows the token.

Whoever writes to the ledger sends a message and goes on; Slack being slow, strict or down is felt
here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import ClusterSpec, Slack
from core.constants import STORIES_MAX_RECEIVE_COUNT
from infra import iam
from infra.functions.function import Function, FunctionArgs
from infra.functions.ledger import Ledger
from infra.functions.packaging import Package
from infra.functions.queues import Queue, QueueArgs

TYPE = "stillwater:infra:Stories"
BATCH = 10
# The least AWS accepts; Slack takes about one message a second.
MAXIMUM_CONCURRENCY = 2


@dataclass(frozen=True, kw_only=True)
class StoriesArgs:
    spec: ClusterSpec
    slack: Slack
    account: iam.Account
    package: Package
    ledger: Ledger


class Stories(pulumi.ComponentResource):
    """The queue, and the function: it reads incidents, keeps threads and knows one secret."""

    queue: Queue
    function: Function

    def __init__(
        self, name: str, args: StoriesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        timings = args.spec.timings
        self.queue = Queue(
            f"{name}-queue",
            QueueArgs(
                queue_name=naming.queue(args.spec.prefix, "stories"),
                visibility_timeout_seconds=timings.queue_visibility_timeout_seconds,
                retention_seconds=timings.events_queue_retention_seconds,
                max_receive_count=STORIES_MAX_RECEIVE_COUNT,
            ),
            opts=child,
        )
        self.function = Function(
            f"{name}-slack",
            FunctionArgs(
                function_name=f"{args.spec.prefix}-slack",
                description="An incident that changed is told in its Slack thread",
                handler="handlers.slack.handler",
                package=args.package,
                timeout_seconds=timings.lambda_timeout_seconds,
                environment=_environment(args, self.queue),
                statements=_statements(args, self.queue),
                account=args.account,
            ),
            opts=child,
        )
        aws.lambda_.EventSourceMapping(
            f"{name}-slack-source",
            event_source_arn=self.queue.arn,
            function_name=self.function.name,
            batch_size=BATCH,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=aws.lambda_.EventSourceMappingScalingConfigArgs(
                maximum_concurrency=MAXIMUM_CONCURRENCY
            ),
            opts=child,
        )
        self.register_outputs({"queue_url": self.queue.url})


def _environment(args: StoriesArgs, queue: Queue) -> dict[str, pulumi.Input[str]]:
    return {
        "STILLWATER_PREFIX": args.spec.prefix,
        "STILLWATER_CLUSTER": args.spec.name,
        "STILLWATER_REGION": args.spec.region,
        "STILLWATER_LEDGER_TABLE": args.ledger.table_name,
        "STILLWATER_STORIES_QUEUE_URL": queue.url,
        "STILLWATER_SLACK_CHANNEL": args.slack.channel,
        "STILLWATER_SLACK_SECRET": args.slack.secret_name,
        "STILLWATER_SLACK_API_URL": args.slack.api_url,
        "STILLWATER_HOLD_LIMIT_S": str(args.spec.timings.hold_limit_seconds),
    }


def _statements(args: StoriesArgs, queue: Queue) -> list[iam.Statement]:
    secret = args.account.arn("secretsmanager", f"secret:{args.slack.secret_name}-??????")
    return [
        iam.Statement(
            sid="ReadItsQueue",
            actions=["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            resources=[queue.arn],
        ),
        iam.Statement(sid="TellItLater", actions=["sqs:SendMessage"], resources=[queue.arn]),
        args.ledger.may(
            "ReadIncidents",
            ["dynamodb:GetItem"],
            "incident#*",
            "rotation#*",
            "story#*",
            f"freezes#{args.spec.name}",
        ),
        args.ledger.may("KeepThreads", ["dynamodb:PutItem"], "story#*"),
        iam.Statement(
            sid="KnowItsToken",
            actions=["secretsmanager:GetSecretValue"],
            # Secrets Manager ends every secret's ARN with six characters of its own.
            resources=[secret],
        ),
    ]
