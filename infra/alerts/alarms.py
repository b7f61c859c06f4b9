"""Lists CloudWatch's alarms: they watch the toolkit itself, which Prometheus does not see.

Pure: a description in, alarms out; infra.alerts makes them. Each says what no data means, because
AWS's counters fall silent when nothing happens, and for one alarm that silence is the fault. The
names of what is watched are the layers' own, so that an alarm needs no other stack's output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.cluster.operated import Operated
from core.ground import constants, naming
from core.incidents.actions import OWN

MINUTE = 60
OLDEST = "ApproximateAgeOfOldestMessage"
FIVE_MINUTES = 300
# Of the time a function has; what comes nearer is killed on a bad day.
NEAR_TIMEOUT = 0.8
FAILURES = 3
# The interruption function reads within seconds, and a spot warning is given two minutes ahead.
EVENTS_AGE_SECONDS = 300
LEDGER_CALLS = ("GetItem", "PutItem", "Query")


@dataclass(frozen=True)
class Missing:
    """What an alarm makes of no data, and why that is right."""

    treatment: Literal["breaching", "notBreaching", "ignore"]
    reason: str


LETTERS_STAY = Missing(
    "ignore", "SQS falls silent about a queue nobody touches, and letters in it are still there."
)
NOTHING_WAITS = Missing("notBreaching", "SQS tells an age only while something waits.")
NOTHING_HAPPENED = Missing("notBreaching", "What does not happen is not counted.")
NOBODY_ASKED = Missing("breaching", "A cluster that nobody examines may be in any state.")
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
    # A count of what happened is over when nothing more happens, which does not mean it is well.
    announces_end: bool = True

    def description(self, runbooks_url: str) -> str:
        """Return what whoever is called reads first."""
        return (
            f"{self.severity.upper()}: {self.meaning} Runbook: {runbooks_url}/{self.runbook}.md "
            f"No data: {self.missing.reason}"
        )


# Alarms on what the functions count, by the counter.
INCIDENTS: Mapping[str, Alarm] = {
    constants.INCIDENTS_RETAINED: Alarm(
        key="incidents-retained",
        severity="critical",
        meaning="An instance was kept because its broker could not leave; it waits for you.",
        runbook="held-or-retained",
        announces_end=False,
    ),
    constants.INCIDENTS_LOST: Alarm(
        key="incidents-lost",
        severity="critical",
        meaning="An instance ended before its broker could leave it.",
        runbook="instance-lost",
        announces_end=False,
    ),
    constants.PAGES_SENT: Alarm(
        key="pages-sent",
        severity="warning",
        meaning="An incident asked for somebody; this is the second way to hear of it.",
        runbook="held-or-retained",
        announces_end=False,
    ),
}
VOLUMES: Mapping[str, Alarm] = {
    constants.VOLUMES_OUT_OF_SLOTS: Alarm(
        key="volumes-out-of-slots",
        severity="warning",
        meaning="A volume must change and has used its four modifications of 24 hours.",
        runbook="volume-out-of-modifications",
    ),
    constants.VOLUMES_INSTANCE_BOUND: Alarm(
        key="volumes-instance-bound",
        severity="warning",
        # Six looks in a row: the shape of an hour, not of a moment.
        periods=6,
        meaning="An instance is asked for more than it gives its volumes.",
        runbook="volume-instance-bound",
    ),
    constants.VOLUMES_REFUSED: Alarm(
        key="volumes-refused",
        severity="warning",
        meaning="A volume must change, and the budget or its policy forbids it.",
        runbook="volume-change-refused",
    ),
    constants.VOLUMES_DRIFTED: Alarm(
        key="volumes-drifted",
        severity="warning",
        periods=3,
        meaning="A volume is not what its claim and its class say: somebody changed it in EC2.",
        runbook="volume-drifted",
    ),
    constants.VOLUMES_STUCK: Alarm(
        key="volumes-stuck",
        severity="critical",
        periods=3,
        meaning="A volume's change was asked for and does not come about.",
        runbook="volume-change-stuck",
    ),
    constants.VOLUMES_UNKNOWN: Alarm(
        key="volumes-unknown",
        severity="warning",
        # A broker that is away for a rotation tells nothing either.
        periods=6,
        meaning="How full volumes are, or what is asked of them, nobody says.",
        runbook="volume-figures-unknown",
    ),
}
LEDGER: Mapping[str, Alarm] = {
    # DynamoDB counts what callers did wrong for a whole account, whoever they are; what the ledger
    # refused us is counted by us.
    constants.LEDGER_ERRORS: Alarm(
        key="ledger-errors",
        severity="critical",
        meaning="The ledger refused the functions, or did not answer.",
        runbook="ledger-failing",
    ),
}
WEBHOOK: Mapping[str, Alarm] = {
    constants.WEBHOOKS_REFUSED: Alarm(
        key="webhooks-refused",
        severity="warning",
        periods=2,
        # The address is public, and now and then somebody knocks.
        threshold=10,
        meaning="The webhook turns callers away: strangers, or a handler with an old token.",
        runbook="webhooks-refused",
    ),
}
HEALTH: Mapping[str, Alarm] = {
    constants.CLUSTER_HEALTH: Alarm(
        key="cluster-unhealthy",
        severity="critical",
        statistic="Maximum",
        threshold=1,
        # One silent source is no alarm yet, nor is an examination that falls into the next period.
        periods=3,
        meaning="Somebody is not served, or nobody can tell: λ health says 500.",
        runbook="cluster-unhealthy",
        missing=NOBODY_ASKED,
    ),
}
STORIES: Mapping[str, Alarm] = {
    constants.STORIES_DELAYED: Alarm(
        key="stories-delayed",
        severity="warning",
        periods=3,
        # Slack takes about one message a second, and a busy minute puts a few back.
        threshold=10,
        meaning="Slack cannot be told: what happens to nodes is in no thread.",
        runbook="slack-silent",
    ),
}


def alarms(cluster: Operated) -> list[Alarm]:
    """Return every alarm of a cluster; limits come from the description's own timeouts."""
    ours = cluster.level == OWN
    # Whoever only watches or answers keeps no instance.
    left_out = () if cluster.acts else (constants.INCIDENTS_RETAINED,)
    found = [
        *_counter_alarms(INCIDENTS, cluster, left_out),
        *(_counter_alarms(VOLUMES, cluster) if ours else ()),
        *_counter_alarms(LEDGER, cluster),
        *_table_alarms(naming.ledger_table(cluster.prefix)),
        *_ages(cluster),
        *(_counter_alarms(WEBHOOK, cluster) if ours else ()),
        *_counter_alarms(HEALTH, cluster),
        *(_counter_alarms(STORIES, cluster) if cluster.slack is not None else ()),
        *(_dead_letters(queue, cluster.prefix) for queue in queues(cluster)),
    ]
    for role, timeout_seconds in functions(cluster).items():
        found += _function(role, naming.function(cluster.prefix, role), timeout_seconds)
    found.append(_sweep_silent(naming.function(cluster.prefix, "sweep")))
    return found


def _counter_alarms(
    table: Mapping[str, Alarm], cluster: Operated, left_out: Sequence[str] = ()
) -> list[Alarm]:
    dimensions = {constants.CLUSTER_DIMENSION: cluster.prefix}
    return [
        replace(
            alarm,
            metrics=(AlarmMetric(namespace=constants.NAMESPACE, name=name, dimensions=dimensions),),
        )
        for name, alarm in table.items()
        if name not in left_out
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


def _table_alarms(table: str) -> list[Alarm]:
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


def _function(role: str, name: str, timeout_seconds: int) -> list[Alarm]:
    return [
        Alarm(
            key=f"{role}-errors",
            metrics=(_function_metric(name, "Errors"),),
            # One that fails is tried again: by its queue, or by the next minute.
            threshold=FAILURES - 1,
            severity="critical",
            meaning=f"The function {name} fails again and again.",
            runbook="function-failing",
        ),
        Alarm(
            key=f"{role}-throttles",
            metrics=(_function_metric(name, "Throttles"),),
            periods=2,
            severity="warning",
            meaning=f"AWS does not let {name} run: its share, or the account's, is used up.",
            runbook="function-failing",
        ),
        Alarm(
            key=f"{role}-duration",
            metrics=(_function_metric(name, "Duration"),),
            statistic="Maximum",
            periods=2,
            threshold=NEAR_TIMEOUT * timeout_seconds * 1000,
            severity="warning",
            meaning=f"{name} takes nearly all of the {timeout_seconds} s it has.",
            runbook="function-failing",
        ),
    ]


def _sweep_silent(name: str) -> Alarm:
    return Alarm(
        key="sweep-silent",
        metrics=(_function_metric(name, "Invocations"),),
        threshold=1,
        below=True,
        periods=2,
        severity="critical",
        meaning="The sweep does not run: an announcement that is lost stays lost.",
        runbook="sweep-silent",
        missing=SILENCE_IS_THE_FAULT,
    )


def _queue_metric(queue: str, name: str) -> AlarmMetric:
    return AlarmMetric(namespace="AWS/SQS", name=name, dimensions={"QueueName": queue})


def _function_metric(function: str, name: str) -> AlarmMetric:
    return AlarmMetric(namespace="AWS/Lambda", name=name, dimensions={"FunctionName": function})
