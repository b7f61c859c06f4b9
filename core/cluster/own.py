"""Counts what Stillwater itself uses in a month: functions, queues, ledger, alarms, metrics, logs.

Counted from the ClusterSpec and the schedules that infra/ makes. Assumptions are constants with
their unit and source; what a call asks of the ledger is held against the functions by
tests/unit/handlers/test_own_use.py. KMS keys stand with what they protect (core.cluster.estimate).
Left out is what stays below a cent: logs as they are kept, SNS messages, S3 objects, calls of
Secrets Manager. So are bytes that nobody knows before: between zones, and of Kafka's answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from core.cluster.operation import memory_mib
from core.cluster.spec import ClusterSpec
from core.cost.pricing import HOURS_PER_MONTH, total
from core.ground.constants import LOOKS_PER_LOAD, SCHEDULES, schedule_minutes

MINUTES_PER_MONTH = 60 * HOURS_PER_MONTH

# Seconds of a call on whole processors: the mean of warm calls on the twin on 2026-11-29, by
# `duration_ms` of `lambda_invoked` in its events.jsonl. samples is assumed.
SECONDS = {
    "sweep": Decimal("0.25"),
    "health": Decimal("0.2"),
    "volumes": Decimal("0.28"),
    "samples": Decimal(5),
    "tick": Decimal("0.73"),
}
# What each node adds to a call: parsing what EC2 says took 0.65 ms of a processor an instance on
# 2026-11-29 (process_time over moto's answers for 9 and for 138); Kubernetes' JSON is quicker.
SECONDS_PER_NODE = Decimal("0.001")
# Lambda's guide, "Configure Lambda function memory": a whole processor comes with so much.
WHOLE_PROCESSOR_MIB = 1769

# Each of Kafka's nodes is replaced once a month, for patches. An incident takes a quarter of an
# hour: a launch, a drain, and the broker's way back. It ticks, and so does the run that it is of.
INCIDENTS_PER_NODE = 1
INCIDENT_SECONDS = 900
TICKS_AT_ONCE = 2

# SQS: Lambda waits on a queue with five receivers of 20 s each, the termination handler with one
# (Lambda's guide, "Lambda event source mappings for SQS"); a tick is sent, received and deleted.
LAMBDA_RECEIVERS, HANDLER_RECEIVERS = 5, 1
RECEIVES_PER_MINUTE = 3
REQUESTS_PER_TICK = 3

# DynamoDB, request units: a read is 4 KiB, half where it may be stale, a write 1 KiB, twice where
# the index has the item, too. A volume's record of two weeks has 15 KiB and is written four times
# an hour.
READS = {"sweep": Decimal(17), "health": Decimal("1.5"), "volumes": Decimal("3.5")}
WRITES = {"volumes": Decimal(1)}
VOLUME_READS, VOLUME_WRITES_PER_HOUR = 4, 60
TICK_READS, TICK_WRITES = 8, 20

# CloudWatch: a volume's rates and minutes of excess, and its instance's.
METRICS_PER_VOLUME, METRICS_PER_INSTANCE = 6, 2
# `ClusterHealth` all the time; the others are billed by the hours in which something is counted.
CUSTOM_METRICS = 2
# What infra/alerts/alarms.yaml and infra.alerts.alarms make of a cluster of our own; an alarm over
# several metrics is billed for each.
ALARM_METRICS, ALARMS_PER_QUEUE, ALARMS_PER_FUNCTION = 21, 1, 3
QUEUES, FUNCTIONS = 3, 7

# Lambda's three lines a call have some 400 bytes, ours another 300 where they say anything.
LOG_BYTES_PER_CALL = 1000
# EC2's answers of an instance or a volume, and an hour of minutes of a metric. moto's have 5 KiB an
# instance, and leave out some of EC2's fields.
KIB_PER_NODE, KIB_PER_METRIC = 8, 4


class OwnUse(NamedTuple):
    """So many units of one item of the price book a month."""

    what: str
    quantity: Decimal
    unit: str
    item: str


def own_use(spec: ClusterSpec) -> Iterator[OwnUse]:
    """Yield what Stillwater itself uses a month for one cluster."""
    nodes = sum(spec.nodes_of(pool) for pool in spec.pools)
    volumes = sum(spec.nodes_of(pool) * len(pool.volumes) for pool in spec.pools)
    # Prometheus knows the load of volumes, and is filed; CloudWatch is asked where there is none.
    counted = spec.metrics.prometheus is not None
    runs = {
        name: MINUTES_PER_MONTH // schedule_minutes(name)
        for name in SCHEDULES
        if counted or name != "samples"
    }
    ticks = (
        nodes * INCIDENTS_PER_NODE * TICKS_AT_ONCE * INCIDENT_SECONDS
    ) // spec.timings.tick_interval_seconds
    asked = 0 if counted else volumes * METRICS_PER_VOLUME + nodes * METRICS_PER_INSTANCE
    asked *= runs["volumes"] // LOOKS_PER_LOAD
    yield from _functions(spec, nodes, runs, ticks)
    yield _queues(spec, ticks)
    yield from _ledger(runs, ticks, volumes)
    yield from _cloudwatch(spec, asked, sum(runs.values()) + ticks, counted=counted)
    secrets = ["webhook"] if spec.slack is None else ["webhook", "Slack"]
    what = f"tokens of {' and '.join(secrets)}"
    yield OwnUse(what, Decimal(len(secrets)), "secrets", "secret_month")
    if not spec.network.interface_endpoints:
        read = (runs["sweep"] * nodes + runs["volumes"] * volumes) * KIB_PER_NODE
        gib = Decimal(read + asked * KIB_PER_METRIC) / 1024**2
        yield OwnUse("answers of AWS through NAT", gib, "GiB", "nat_gib")


def _functions(spec: ClusterSpec, nodes: int, runs: dict[str, int], ticks: int) -> Iterator[OwnUse]:
    memory = Decimal(memory_mib(spec))
    gib = memory / 1024 * max(Decimal(1), WHOLE_PROCESSOR_MIB / memory)

    def running(calls: dict[str, int]) -> Decimal:
        each = (n * (SECONDS[name] + nodes * SECONDS_PER_NODE) for name, n in calls.items())
        return gib * total(each)

    item = "lambda_arm_gib_second"
    yield OwnUse("functions on a schedule", running(runs), "GiB-seconds", item)
    yield OwnUse("ticks of incidents", running({"tick": ticks}), "GiB-seconds", item)
    calls = Decimal(sum(runs.values()) + ticks)
    yield OwnUse("calls of functions", calls, "requests", "lambda_request")


def _queues(spec: ClusterSpec, ticks: int) -> OwnUse:
    receivers = (2 if spec.slack is None else 3) * LAMBDA_RECEIVERS + HANDLER_RECEIVERS
    requests = receivers * RECEIVES_PER_MINUTE * MINUTES_PER_MONTH + ticks * REQUESTS_PER_TICK
    return OwnUse("waiting on queues, and ticks", Decimal(requests), "requests", "sqs_request")


def _ledger(runs: dict[str, int], ticks: int, volumes: int) -> Iterator[OwnUse]:
    reads = total(runs[name] * units for name, units in READS.items())
    reads += runs["volumes"] * volumes * VOLUME_READS + ticks * TICK_READS
    yield OwnUse("ledger, read", reads, "units", "dynamodb_read_unit")
    writes = total(runs[name] * units for name, units in WRITES.items())
    writes += HOURS_PER_MONTH * volumes * VOLUME_WRITES_PER_HOUR + ticks * TICK_WRITES
    yield OwnUse("ledger, written", writes, "units", "dynamodb_write_unit")


def alarm_metrics(spec: ClusterSpec) -> int:
    """Return how many metrics the alarms watch, each alarm counted with its own."""
    if not spec.alerts.enabled:
        return 0
    told = spec.slack is not None
    queues = QUEUES + told + (spec.node_provisioner == "karpenter")
    functions = FUNCTIONS + told + (spec.metrics.prometheus is not None)
    return ALARM_METRICS + told + queues * ALARMS_PER_QUEUE + functions * ALARMS_PER_FUNCTION


def _cloudwatch(spec: ClusterSpec, asked: int, calls: int, *, counted: bool) -> Iterator[OwnUse]:
    alarms = Decimal(alarm_metrics(spec))
    yield OwnUse("metrics that alarms watch", alarms, "metrics", "alarm_metric_month")
    dashboards = Decimal(int(spec.alerts.enabled))
    yield OwnUse("overview in CloudWatch", dashboards, "dashboards", "dashboard_month")
    yield OwnUse("metrics of our own", Decimal(CUSTOM_METRICS), "metrics", "metric_month")
    if not counted:
        what = "load of volumes, by CloudWatch"
        yield OwnUse(what, Decimal(asked), "metrics", "metric_asked")
    logged = Decimal(calls * LOG_BYTES_PER_CALL) / 1024**3
    yield OwnUse("logs of functions", logged, "GiB", "log_gib_ingested")
