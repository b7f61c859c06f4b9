"""EventBridge patterns of everything core.events acts on, as narrow as each service allows.

Auto Scaling events name their group, so rules take ours alone. Events of EC2, EBS, Health and ARC
name neither group nor cluster: every cluster of an account hears all of them, and the handlers ask
the tags of the instance or volume. The detail-types are those the parser reads, taken from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core import naming
from core.constants import HOOKS
from core.events import Kind, alarms, health, instances, scheduled, volumes, zones
from core.events import groups as activities
from core.events.scheduled import ChangeResponse

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
        **(_of_scaling(groups, hooks) if groups else {}),
        **OF_INSTANCES,
        "capacity-block": {"source": ["aws.ec2"], "detail-type": list(instances.BLOCK_EXPIRES)},
        "volume": _ec2(
            volumes.DETAIL_TYPE,
            # Field by field: an event has both, but a result that succeeds is asked for by none.
            event=_each(event for event, _ in volumes.OUTCOMES),
            result=_each(result for _, result in volumes.OUTCOMES),
        ),
        "health": _health(health.SCHEDULED, service=sorted(health.SCHEDULING_SERVICES)),
        # Any service's: the loss of a zone has been announced under MULTIPLE_SERVICES.
        "health-issue": _health(health.ISSUE),
        "zonal-shift": {"source": ["aws.arc-zonal-shift"], "detail-type": list(zones.SHIFTS)},
        "stalled-io": _stall_pattern(),
    }


def _of_scaling(groups: Sequence[Group], hooks: Sequence[str]) -> Mapping[str, Pattern]:
    """Return what Auto Scaling says of groups; EventBridge takes no list of none."""
    return {
        "terminate": _terminate(groups, hooks),
        "activity": _of_groups(groups, activities.ACTIVITIES),
        "refresh": _of_groups(groups, activities.REFRESHES),
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


def _of_groups(groups: Sequence[Group], detail_types: Iterable[str]) -> Pattern:
    return {
        "source": ["aws.autoscaling"],
        "detail-type": list(detail_types),
        "detail": {"AutoScalingGroupName": list(groups)},
    }


def _terminate(groups: Sequence[Group], hooks: Sequence[str]) -> Pattern:
    """Match a termination that waits in our hooks, which hold no launch; no hooks: in any."""
    ours = _of_groups(groups, [TERMINATE])
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
    return sorted(
        code for code, answer in scheduled.CODES.items() if answer is ChangeResponse.RETIRE
    )


def _stall_pattern() -> Pattern:
    """Match alarms by the metric they watch, whatever they are called and whoever made them."""
    metric = {"name": sorted(alarms.STALLED_METRICS)}
    return {
        "source": ["aws.cloudwatch"],
        "detail-type": [alarms.DETAIL_TYPE],
        "detail": {
            "state": {"value": ["ALARM", "OK"]},
            "configuration": {"metrics": {"metricStat": {"metric": metric}}},
        },
    }


def _each(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
