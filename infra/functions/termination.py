"""Brings AWS's announcements to us: EventBridge rules -> the events queue.

infra.functions.announcements says which events; what nobody would act on is not delivered.

The node termination handler has a queue of its own. On the `held` route only our tick writes to
it, once a replacement is Ready and the broker may go. On the `direct` route the rules feed it as
well: the plain wiring, without the hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import Timings
from core.constants import EVENTS_MAX_RECEIVE_COUNT, HOOKS
from infra.functions.announcements import Group, Pattern, direct_rules, events_rules
from infra.functions.queues import MessageQueue, QueueArgs
from infra.iam import Account

TYPE = "stillwater:infra:Termination"
# By then the sweep has long found what an event would have said; one that still cannot be delivered
# is evidence, not news.
DELIVERY_SECONDS = 3600
# EventBridge's own limit, which the age above comes before.
DELIVERY_ATTEMPTS = 185


@dataclass(frozen=True, kw_only=True)
class TerminationArgs:
    prefix: str
    account: Account
    # The Auto Scaling groups that are listened to.
    groups: Sequence[Group]
    # The hooks of theirs that are; none: any.
    hooks: Sequence[str] = HOOKS
    timings: Timings
    drain_route: Literal["held", "direct"]
    # Whether a termination handler of ours reads a queue of its own.
    handler: bool = True


class Termination(pulumi.ComponentResource):
    """The two queues and the rules that feed them."""

    events_queue: MessageQueue
    # None: the termination handler is not ours.
    nth_queue: MessageQueue | None = None

    def __init__(
        self, name: str, args: TerminationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        timings = args.timings
        self.events_queue = self._fed_queue(
            "events",
            events_rules(args.groups, args.hooks),
            visibility=timings.queue_visibility_timeout_seconds,
            retention=timings.events_queue_retention_seconds,
            max_receive_count=EVENTS_MAX_RECEIVE_COUNT,
        )
        self.nth_queue = self._handlers_queue() if args.handler else None
        self.register_outputs({"events_queue_url": self.events_queue.url})

    @property
    def handlers_queue(self) -> MessageQueue:
        """The queue of a termination handler that is ours."""
        if self.nth_queue is None:
            raise ValueError(f"{self._name} was made without a queue for a termination handler.")
        return self.nth_queue

    def _handlers_queue(self) -> MessageQueue:
        args, timings = self._args, self._args.timings
        return self._fed_queue(
            "nth",
            direct_rules(args.groups) if args.drain_route == "direct" else {},
            visibility=timings.nth_visibility_timeout_seconds,
            retention=timings.nth_retention_seconds(args.drain_route),
            # A drain that outlasts the visibility timeout is received again, and dropped as known:
            # every one of those counts, so the limit is sized for the longest drain (core.timing).
            max_receive_count=timings.nth_max_receive_count,
            # Our tick, on the held route: what it says is drained.
            senders=[args.account.our_roles(args.prefix)],
        )

    def _fed_queue(
        self,
        role: str,
        patterns: Mapping[str, Pattern],
        *,
        visibility: int,
        retention: int,
        max_receive_count: int,
        senders: Sequence[str] = (),
    ) -> MessageQueue:
        rules = {key: self._rule(key, pattern) for key, pattern in patterns.items()}
        queue = MessageQueue(
            f"{self._name}-{role}",
            QueueArgs(
                queue_name=naming.queue(self._args.prefix, role),
                visibility_timeout_seconds=visibility,
                retention_seconds=retention,
                max_receive_count=max_receive_count,
                rule_arns=[rule.arn for rule in rules.values()],
                senders=senders,
            ),
            opts=self._child,
        )
        for key, rule in rules.items():
            aws.cloudwatch.EventTarget(
                f"{self._name}-{key}-target",
                rule=rule.name,
                target_id=role,
                arn=queue.arn,
                retry_policy={
                    "maximum_event_age_in_seconds": DELIVERY_SECONDS,
                    "maximum_retry_attempts": DELIVERY_ATTEMPTS,
                },
                # What EventBridge cannot deliver is kept with the other dead letters.
                dead_letter_config={"arn": queue.dead_letters_arn},
                opts=pulumi.ResourceOptions(parent=self, depends_on=queue.policies),
            )
        return queue

    def _rule(self, key: str, pattern: Pattern) -> aws.cloudwatch.EventRule:
        return aws.cloudwatch.EventRule(
            f"{self._name}-{key}",
            name=f"{self._args.prefix}-{key}",
            description=f"Stillwater {self._args.prefix}: {key} announcements",
            event_pattern=json.dumps(pattern),
            opts=self._child,
        )
