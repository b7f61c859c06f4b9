"""Lists CloudWatch's alarms: they watch the toolkit itself, which Prometheus does not see.

Pure: a description and alarms.yaml in, alarms out; infra.alerts makes them. Each says what no data
means, because AWS's counters fall silent when nothing happens, and for one alarm that silence is
the fault. The names of what is watched are the layers' own, so that an alarm needs no other stack's
output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from core.cluster.operated import Operated
from core.ground import constants, naming
from core.incidents.actions import OWN

MINUTE = 60
OLDEST = "ApproximateAgeOfOldestMessage"
FIVE_MINUTES = 300
# Of the time a function has; what comes nearer is killed on a bad day.
NEAR_TIMEOUT = 0.8
LAMBDA, RETAINED = "AWS/Lambda", "incidents-retained"
# The interruption function reads within seconds, and a spot warning is given two minutes ahead.
EVENTS_AGE_SECONDS = 300
LEDGER_CALLS = ("GetItem", "PutItem", "Query")


@dataclass(frozen=True)
class Missing:
    """What an alarm makes of no data, and why that is right."""

    treatment: Literal["breaching", "notBreaching", "ignore"]
    reason: str


LETTERS_STAY = Missing(
    "ignore", "SQS falls silent about an idle queue, and letters in it are still there."
)
NOTHING_WAITS = Missing("notBreaching", "SQS tells an age only while something waits.")
NOTHING_HAPPENED = Missing("notBreaching", "Missing events are not counted.")
NOBODY_ASKED = Missing("breaching", "A cluster without an examination may be in any state.")
SILENCE_IS_THE_FAULT = Missing("breaching", "A function that is not called leaves no data.")


@dataclass(frozen=True, kw_only=True)
class AlarmMetric:
    """One series of CloudWatch's."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """One alarm over one series, or over the sum of several."""

    key: str
    metrics: tuple[AlarmMetric, ...] = ()
    statistic: Literal["Sum", "Maximum"] = "Sum"
    period_seconds: int = FIVE_MINUTES
    periods: int = 1
    threshold: float = 0
    below: bool = False
    severity: Literal["critical", "warning"]
    meaning: str
    runbook: str
    missing: Missing = NOTHING_HAPPENED
    # Whether its end is told as well.
    announces_end: bool = True

    def description(self, runbooks_url: str) -> str:
        """Return what whoever is called reads first."""
        return (
            f"{self.severity.upper()}: {self.meaning} Runbook: {runbooks_url}/{self.runbook}.md "
            f"No data: {self.missing.reason}"
        )


# How the table calls what it makes of no data, where it is not the usual.
_MISSING = {"nobody asked": NOBODY_ASKED, "silence is the fault": SILENCE_IS_THE_FAULT}


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    found: Mapping[str, Any] = yaml.safe_load(
        Path(__file__).with_name("alarms.yaml").read_text("utf-8")
    )
    return found


def _of_table(
    group: str, namespace: str, dimensions: Mapping[str, str], **words: object
) -> list[Alarm]:
    """Return a group of the table's alarms, each on its metric in a namespace."""
    return [
        Alarm(
            **{
                **row,
                "key": row["key"].format(**words),
                "meaning": row["meaning"].format(**words),
                "missing": _MISSING.get(row.get("missing", ""), NOTHING_HAPPENED),
            },
            metrics=(AlarmMetric(namespace=namespace, name=name, dimensions=dimensions),),
        )
        for name, row in _table()[group].items()
    ]


def alarms(cluster: Operated) -> list[Alarm]:
    """Return every alarm of a cluster; limits come from the description's own timeouts."""
    ours, dimensions = cluster.level == OWN, {constants.CLUSTER_DIMENSION: cluster.prefix}

    def counted(group: str) -> list[Alarm]:
        return _of_table(group, constants.NAMESPACE, dimensions)

    return [
        # Whoever only watches or answers keeps no instance.
        *(each for each in counted("incidents") if cluster.acts or each.key != RETAINED),
        *(counted("volumes") if ours else ()),
        *counted("ledger"),
        *_ledger_alarms(naming.ledger_table(cluster.prefix)),
        *_ages(cluster),
        *(counted("webhook") if ours else ()),
        *counted("health"),
        *(counted("stories") if cluster.slack is not None else ()),
        *(_dead_letters(queue, cluster.prefix) for queue in queues(cluster)),
        *(
            alarm
            for role, timeout_seconds in functions(cluster).items()
            for alarm in _function_alarms(cluster, role, timeout_seconds)
        ),
        *_of_table("sweep", LAMBDA, {"FunctionName": naming.function(cluster.prefix, "sweep")}),
    ]


def functions(cluster: Operated) -> Mapping[str, int]:
    """Return every function by its role, and the seconds it has."""
    # The definitions know the engine's SDK, which takes a second to import.
    from infra.functions import catalogue  # noqa: PLC0415

    return {each.name: each.timeout(cluster) for each in catalogue.functions(cluster)}


def queues(cluster: Operated) -> Sequence[str]:
    """Return every queue that has dead letters."""
    roles = [*cluster.queues, *([] if cluster.slack is None else ["stories"])]
    return [naming.queue(cluster.prefix, role) for role in roles]


def names(cluster: Operated) -> list[str]:
    """Return what CloudWatch knows a cluster's alarms by; none where none are wanted."""
    if not cluster.alerts.enabled:
        return []
    return [naming.alarm(cluster.prefix, alarm.key) for alarm in alarms(cluster)]


def _ledger_alarms(table: str) -> list[Alarm]:
    named = {"TableName": table}
    failed = [
        AlarmMetric(
            namespace="AWS/DynamoDB", name="SystemErrors", dimensions={**named, "Operation": call}
        )
        for call in LEDGER_CALLS
    ]
    slowed = [
        AlarmMetric(namespace="AWS/DynamoDB", name=name, dimensions=named)
        for name in ("ReadThrottleEvents", "WriteThrottleEvents")
    ]
    return [
        Alarm(
            key="ledger-system-errors",
            metrics=tuple(failed),
            severity="critical",
            meaning="DynamoDB failed on the ledger's table.",
            runbook="ledger-failing",
        ),
        Alarm(
            key="ledger-throttled",
            metrics=tuple(slowed),
            severity="critical",
            meaning="DynamoDB slowed the ledger's table down.",
            runbook="ledger-failing",
        ),
    ]


def _dead_letters(queue: str, prefix: str) -> Alarm:
    letters = naming.dead_letter_queue(queue)
    return Alarm(
        key=letters.removeprefix(f"{prefix}-"),
        metrics=(_queue_metric(letters, "ApproximateNumberOfMessagesVisible"),),
        statistic="Maximum",
        period_seconds=MINUTE,
        severity="critical",
        meaning=f"Messages of {queue} could not be handled and lie in {letters}.",
        runbook="dead-letters",
        missing=LETTERS_STAY,
    )


def _ages(cluster: Operated) -> list[Alarm]:
    timings = cluster.timings
    limits = {
        "events": (EVENTS_AGE_SECONDS, "announcements of AWS are not read"),
        # A tick that failed comes back after one visibility timeout, and is late, not lost.
        "ticks": (2 * timings.queue_visibility_timeout_seconds, "no incident goes on"),
        # The handler receives a drain it still works on again and again, and SQS leaves out what
        # was received three times: an older message is one that nobody receives.
        "nth": (6 * timings.nth_visibility_timeout_seconds, "nodes are not drained"),
    }
    return [
        Alarm(
            key=f"{role}-age",
            metrics=(_queue_metric(naming.queue(cluster.prefix, role), OLDEST),),
            statistic="Maximum",
            period_seconds=MINUTE,
            periods=2,
            threshold=limit,
            severity="critical",
            meaning=f"A message waits for more than {limit} s: {consequence}.",
            runbook="queue-not-read",
            missing=NOTHING_WAITS,
        )
        for role, (limit, consequence) in limits.items()
        if role in cluster.queues
    ]


def _function_alarms(cluster: Operated, role: str, timeout_seconds: int) -> list[Alarm]:
    name = naming.function(cluster.prefix, role)
    found = _of_table(
        "function", LAMBDA, {"FunctionName": name}, role=role, name=name, seconds=timeout_seconds
    )
    slow = NEAR_TIMEOUT * timeout_seconds * 1000
    return [
        replace(each, threshold=slow) if each.metrics[0].name == "Duration" else each
        for each in found
    ]


def _queue_metric(queue: str, name: str) -> AlarmMetric:
    return AlarmMetric(namespace="AWS/SQS", name=name, dimensions={"QueueName": queue})
