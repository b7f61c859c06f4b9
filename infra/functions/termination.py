"""Brings AWS's announcements to us: EventBridge rules -> the events queue, with its dead letters.

The node termination handler has a queue of its own. On the `held` route only our tick writes to
it, once a replacement is Ready and the broker may go. On the `direct` route the rules feed it as
well: the plain wiring, without the hold.

Patterns are as narrow as each service allows, with the detail-types that core.events parses. Auto
Scaling events name their group, so rules take ours alone. Events of EC2, EBS, Health and ARC name
neither group nor cluster: every cluster of an account hears all of them, and the handlers ask the
tags of the instance or volume.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
import pulumi_aws as aws

from core.cluster import Timings
from core.cluster.operated import Operated
from core.events import Kind, health, instances
from core.events.health import ChangeResponse
from core.events.instances import ACTIVITIES, REFRESHES
from core.ground import naming
from core.ground.constants import DEAD_LETTER_RETENTION_SECONDS, EVENTS_MAX_RECEIVE_COUNT, HOOKS
from infra import iam
from infra.iam import Account

QUEUE_TYPE = "stillwater:infra:Queue"


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
        super().__init__(QUEUE_TYPE, name, None, opts)
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


Pattern = Mapping[str, Any]
# An Auto Scaling group by its name, or by what that begins with.
Group = str | Mapping[str, str]

TERMINATE = "EC2 Instance-terminate Lifecycle Action"


def _ec2(detail_type: str, **detail: Sequence[str]) -> Pattern:
    pattern: Pattern = {"source": ["aws.ec2"], "detail-type": [detail_type]}
    return {**pattern, "detail": dict(detail)} if detail else pattern


_DETAIL = {Kind.STATE_CHANGE: {"state": sorted(instances.LEAVING_STATES)}}
# About one instance each, whatever group it is in, or none.
OF_INSTANCES: Mapping[str, Pattern] = {
    notice.rule: _ec2(detail_type, **_DETAIL.get(notice.kind, {}))
    for detail_type, notice in instances.NOTICES.items()
}


def events_rules(groups: Sequence[Group], hooks: Sequence[str] = HOOKS) -> Mapping[str, Pattern]:
    """Return the patterns of the events queue by the rule's short name; no hooks: of any."""
    return {
        **(_scaling_patterns(groups, hooks) if groups else {}),
        **OF_INSTANCES,
        "capacity-block": {"source": ["aws.ec2"], "detail-type": list(instances.BLOCK_EXPIRES)},
        "volume": _ec2(
            instances.VOLUME_NOTIFICATION,
            # Field by field: an event has both, but a result that succeeds is asked for by none.
            event=_each(event for event, _ in instances.OUTCOMES),
            result=_each(result for _, result in instances.OUTCOMES),
        ),
        "health": _health(health.SCHEDULED, service=sorted(health.SCHEDULING_SERVICES)),
        # Any service's: the loss of a zone has been announced under MULTIPLE_SERVICES.
        "health-issue": _health(health.ISSUE),
        "zonal-shift": {"source": ["aws.arc-zonal-shift"], "detail-type": list(instances.SHIFTS)},
        "stalled-io": _stall_pattern(),
    }


def _scaling_patterns(groups: Sequence[Group], hooks: Sequence[str]) -> Mapping[str, Pattern]:
    """Return what Auto Scaling says of groups; EventBridge takes no list of none."""
    return {
        "terminate": _terminate(groups, hooks),
        "activity": _group_pattern(groups, ACTIVITIES),
        "refresh": _group_pattern(groups, REFRESHES),
    }


def direct_rules(groups: Sequence[Group]) -> Mapping[str, Pattern]:
    """Return the patterns of the termination handler's own queue on the direct route.

    What it understands. Never `gate`: it would complete the hook that guards the volumes.
    """
    return {
        **({"nth-terminate": _terminate(groups, [naming.DRAIN_HOOK])} if groups else {}),
        "nth-spot": OF_INSTANCES["spot"],
        "nth-state-change": OF_INSTANCES["state-change"],
        # It drains whatever it hears of at once: only what takes an instance away.
        "nth-health": _health(health.SCHEDULED, service=["EC2"], eventTypeCode=_retiring()),
    }


def our_groups(prefix: str, pools: Sequence[str]) -> list[Group]:
    """Match a pool's groups by what their names begin with: a letter per zone follows."""
    return [{"prefix": naming.auto_scaling_group(prefix, pool, " ").rstrip()} for pool in pools]


def _group_pattern(groups: Sequence[Group], detail_types: Iterable[str]) -> Pattern:
    return {
        "source": ["aws.autoscaling"],
        "detail-type": list(detail_types),
        "detail": {"AutoScalingGroupName": list(groups)},
    }


def _terminate(groups: Sequence[Group], hooks: Sequence[str]) -> Pattern:
    """Match a termination that waits in our hooks, which hold no launch; no hooks: in any."""
    ours = _group_pattern(groups, [TERMINATE])
    if not hooks:
        return ours
    return {**ours, "detail": {**ours["detail"], "LifecycleHookName": list(hooks)}}


def _health(category: str, **detail: Sequence[str]) -> Pattern:
    """Match by category, not by code: a code that is new must not go unheard."""
    return {
        "source": ["aws.health"],
        "detail-type": ["AWS Health Event"],
        "detail": {"eventTypeCategory": [category], **detail},
    }


def _retiring() -> list[str]:
    return sorted(code for code, answer in health.CODES.items() if answer is ChangeResponse.RETIRE)


def _stall_pattern() -> Pattern:
    """Match alarms by the metric they watch, whatever they are called and whoever made them."""
    metric = {"name": sorted(instances.STALLED_METRICS)}
    return {
        "source": ["aws.cloudwatch"],
        "detail-type": [instances.ALARM_STATE_CHANGE],
        "detail": {
            "state": {"value": ["ALARM", "OK"]},
            "configuration": {"metrics": {"metricStat": {"metric": metric}}},
        },
    }


def _each(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


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
