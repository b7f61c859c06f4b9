"""How AWS's announcements reach us: EventBridge rules -> the events queue.

Auto Scaling events name their lifecycle hook, so rules take ours alone. Events of EC2 and Health
name neither group nor cluster: every cluster of an account hears all of them, and the handlers
ask the instance's tags.

The node termination handler has a queue of its own. On the `held` route only our tick writes to
it, once a replacement is Ready and the broker may go. On the `direct` route the rules feed it as
well: the plain wiring, without the hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster import Timings
from infra.queues import Queue, QueueArgs

TYPE = "stillwater:infra:Termination"
# A bad event is recorded as ignored at the first try; what fails so often is a fault of ours.
EVENTS_MAX_RECEIVE_COUNT = 10

Pattern = Mapping[str, Any]


def _lifecycle(detail_type: str, hooks: Sequence[str]) -> Pattern:
    return {
        "source": ["aws.autoscaling"],
        "detail-type": [detail_type],
        "detail": {"LifecycleHookName": list(hooks)},
    }


def _ec2(detail_type: str) -> Pattern:
    return {"source": ["aws.ec2"], "detail-type": [detail_type]}


TERMINATE = "EC2 Instance-terminate Lifecycle Action"
LAUNCH = "EC2 Instance-launch Lifecycle Action"
OUR_HOOKS = (naming.DRAIN_HOOK, naming.GATE_HOOK)

EVENTS_RULES: Mapping[str, Pattern] = {
    "terminate": _lifecycle(TERMINATE, OUR_HOOKS),
    "launch": _lifecycle(LAUNCH, OUR_HOOKS),
    "spot": _ec2("EC2 Spot Instance Interruption Warning"),
    "capacity-reservation": _ec2("EC2 Capacity Reservation Instance Interruption Warning"),
    "rebalance": _ec2("EC2 Instance Rebalance Recommendation"),
    "state-change": _ec2("EC2 Instance State-change Notification"),
    "health": {
        "source": ["aws.health"],
        "detail-type": ["AWS Health Event"],
        "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
    },
}

# What the handler understands. Never `gate`: it would complete the hook that guards the volumes.
DIRECT_RULES: Mapping[str, Pattern] = {
    "nth-terminate": _lifecycle(TERMINATE, [naming.DRAIN_HOOK]),
    "nth-spot": EVENTS_RULES["spot"],
    "nth-state-change": EVENTS_RULES["state-change"],
    "nth-health": EVENTS_RULES["health"],
}


@dataclass(frozen=True, kw_only=True)
class TerminationArgs:
    prefix: str
    timings: Timings
    drain_route: Literal["held", "direct"]


class Termination(pulumi.ComponentResource):
    """The two queues and the rules that feed them."""

    events_queue: Queue
    nth_queue: Queue

    def __init__(
        self, name: str, args: TerminationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        timings = args.timings
        self.events_queue = self._fed_queue(
            "events",
            EVENTS_RULES,
            visibility=timings.queue_visibility_timeout_seconds,
            retention=timings.events_queue_retention_seconds,
            max_receive_count=EVENTS_MAX_RECEIVE_COUNT,
        )
        self.nth_queue = self._fed_queue(
            "nth",
            DIRECT_RULES if args.drain_route == "direct" else {},
            visibility=timings.nth_visibility_timeout_seconds,
            retention=timings.nth_queue_retention_seconds,
            # A drain that outlasts the visibility timeout is received again, and dropped as known:
            # every one of those counts, so the limit is sized for the longest drain (core.timing).
            max_receive_count=timings.nth_max_receive_count,
        )
        self.register_outputs(
            {"events_queue_url": self.events_queue.url, "nth_queue_url": self.nth_queue.url}
        )

    def _fed_queue(
        self,
        role: str,
        patterns: Mapping[str, Pattern],
        *,
        visibility: int,
        retention: int,
        max_receive_count: int,
    ) -> Queue:
        rules = {key: self._rule(key, pattern) for key, pattern in patterns.items()}
        queue = Queue(
            f"{self._name}-{role}",
            QueueArgs(
                queue_name=naming.queue(self._args.prefix, role),
                visibility_timeout_seconds=visibility,
                retention_seconds=retention,
                max_receive_count=max_receive_count,
                rule_arns=[rule.arn for rule in rules.values()],
            ),
            opts=self._child,
        )
        for key, rule in rules.items():
            aws.cloudwatch.EventTarget(
                f"{self._name}-{key}-target",
                rule=rule.name,
                target_id=role,
                arn=queue.arn,
                # What EventBridge cannot deliver for a day is kept with the other dead letters.
                dead_letter_config=aws.cloudwatch.EventTargetDeadLetterConfigArgs(
                    arn=queue.dead_letters_arn
                ),
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
