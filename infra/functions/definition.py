"""Defines a Lambda once: what it is called, told, woken by, and may do.

Zip, environment, policies, RBAC, alarms and docs/reference/functions.md follow from it. What it may
do is said by names alone, so that it can be read and tested without making anything; its ACLs in
Kafka follow from its calls (core.settings.functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from core import naming
from core.cluster.operated import Operated
from core.settings.functions import FunctionSettings
from infra import iam
from infra.functions.rbac import Rights

# In the ledger's table, beside incidents and volumes: what is too long for an environment.
SETTINGS_KEYS = "settings#*"


@dataclass(frozen=True, kw_only=True)
class Reads:
    """A queue that wakes a function: how many messages at a time, and how many times at once."""

    queue: str
    batch: int
    at_once: int


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose function it is: what a right's resources are named after."""

    cluster: Operated
    account: iam.Account

    def queue(self, role: str) -> str:
        return self.account.arn("sqs", naming.queue(self.cluster.prefix, role))

    @property
    def handler_queue(self) -> str:
        """The termination handler's queue: ours, or by the URL that was named."""
        url = self.cluster.handler_queue_url
        if url is None:
            return self.queue("nth")
        host, account_id, name = url.removeprefix("https://").split("/")
        return f"arn:{self.account.partition}:sqs:{host.split('.')[1]}:{account_id}:{name}"

    @property
    def table(self) -> str:
        return self.account.arn("dynamodb", f"table/{naming.ledger_table(self.cluster.prefix)}")

    def secret(self, name: str) -> str:
        # Secrets Manager ends every secret's ARN with six characters of its own.
        return self.account.arn("secretsmanager", f"secret:{name}-??????")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One Lambda: `handlers.<name>.handler`, known to AWS as `<prefix>-<name>`."""

    name: str
    description: str
    settings: type[FunctionSettings]
    may: Callable[[Scope], Sequence[iam.Statement]]
    # The fields of its settings that a description says to it alone (infra.functions.settings).
    own_settings: Callable[[Operated], Mapping[str, Any]] = lambda _: {}
    # In the cluster; a function that has no rights there stands outside the VPC.
    kubernetes: Callable[[Operated], Rights] | None = None
    # Woken at fixed times: EventBridge's expression, and what the function then does.
    schedule: tuple[str, str] | None = None
    reads: Reads | None = None
    # None: the description's own limit.
    timeout_seconds: int | None = None
    # How many may run at once; None: as many as the account allows.
    reserved_concurrency: Callable[[Operated], int | None] = lambda _: None

    def timeout(self, cluster: Operated) -> int:
        return self.timeout_seconds or cluster.timings.lambda_timeout_seconds


def read_queue(scope: Scope, role: str) -> iam.Statement:
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    return iam.Statement(sid="ReadItsQueue", actions=actions, resources=[scope.queue(role)])


def send(scope: Scope, sid: str, role: str) -> iam.Statement:
    return iam.Statement(sid=sid, actions=["sqs:SendMessage"], resources=[scope.queue(role)])


def write_incidents(scope: Scope) -> list[iam.Statement]:
    """Return the rights of a function that writes incidents, and has others go on with them."""
    told = [] if scope.cluster.slack is None else [send(scope, "AskForAStory", "stories")]
    return [
        send(scope, "AskForATick", "ticks"),
        *told,
        *keep_the_ledger(scope),
        find_open(scope),
    ]


def keep_the_ledger(scope: Scope) -> list[iam.Statement]:
    """Return the right to the ledger's items; what functions are told, only stacks write."""
    none = {"ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": [SETTINGS_KEYS]}}
    return [
        iam.Statement(sid="ReadTheLedger", actions=["dynamodb:GetItem"], resources=[scope.table]),
        iam.Statement(
            sid="KeepTheLedger",
            actions=["dynamodb:PutItem"],
            resources=[scope.table],
            conditions=none,
        ),
    ]


def find_open(scope: Scope) -> iam.Statement:
    open_index = f"{scope.table}/index/open"
    return iam.Statement(
        sid="FindOpenIncidents", actions=["dynamodb:Query"], resources=[open_index]
    )


def on_items(scope: Scope, sid: str, calls: Sequence[str], *keys: str) -> iam.Statement:
    """Return the right to items of the ledger, by patterns of their partition key."""
    return iam.Statement(
        sid=sid,
        actions=[f"dynamodb:{call}" for call in calls],
        resources=[scope.table],
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}},
    )


def read_settings(scope: Scope) -> iam.Statement:
    return on_items(scope, "ReadItsSettings", ["GetItem"], SETTINGS_KEYS)


def look(*actions: str) -> iam.Statement:
    # Describe calls of EC2 and Auto Scaling, and metrics' data, take no resource.
    return iam.Statement(sid="LookAround", actions=actions, resources=iam.ANY_RESOURCE)


def know(secret: pulumi.Input[str], sid: str = "KnowItsToken") -> iam.Statement:
    actions = ["secretsmanager:GetSecretValue"]
    return iam.Statement(sid=sid, actions=actions, resources=[secret])
