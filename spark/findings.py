"""Names what is read beside the bill, and what the jobs find in both, with their shapes.

ROTATIONS are an input, read anew by every run. The others are tables, made from USAGE,
COST and the inputs, and all that the report reads.
"""

from __future__ import annotations

from spark.schemas import BOOLEAN, DATE, DOUBLE, INTEGER, LONG, MOMENT, MONEY, STRING, struct
from spark.tables import Table

# One incident of a Kafka node, from the ledger's archive.
ROTATIONS = struct(
    billing_period=STRING,  # month in which it ended
    cluster=STRING,
    incident=STRING,
    instance_id=STRING,
    node_id=INTEGER,
    zone=STRING,
    pool=STRING,
    kind=STRING,  # core.events.Kind
    outcome=STRING,  # core.incidents.record.State
    opened_at=MOMENT,
    stopped_at=MOMENT,  # drain forwarded, or the machine lost: from here on the broker may be gone
    back_at=MOMENT,  # seen in every ISR again; null where nobody saw it
    closed_at=MOMENT,
)

# One volume: what it is, what it does, what it should be.
STORAGE = struct(
    billing_period=STRING,
    cluster=STRING,
    owner=STRING,
    node_id=INTEGER,
    zone=STRING,
    resource_id=STRING,  # vol-... or snap-...
    kind=STRING,  # gp3, gp2, io1, io2, ... or snapshot
    size_gib=INTEGER,
    iops=INTEGER,
    throughput_mib_per_s=INTEGER,
    known_from=STRING,  # `bill`, `spec`: where the provisioned figures are from
    used_bytes=LONG,
    growth_bytes_per_day=DOUBLE,
    iops_p999=DOUBLE,
    throughput_p999_bytes_per_s=DOUBLE,
    billed_cost=MONEY,
    finding=STRING,  # spark.transforms.volumes.Finding
    wanted_size_gib=INTEGER,
    wanted_iops=INTEGER,
    wanted_throughput_mib_per_s=INTEGER,
    monthly_saving=MONEY,  # at the bill's rates or at list price; never negative
    one_off_cost=MONEY,  # of the remedy: what is copied between zones
    reason=STRING,
)

# One rotation: what was seen, what the model says of it, and what it cost.
RESYNC = struct(
    billing_period=STRING,
    cluster=STRING,
    incident=STRING,
    node_id=INTEGER,
    zone=STRING,
    kind=STRING,
    outcome=STRING,
    started_at=MOMENT,
    measured_from=STRING,  # `metrics`, or `ledger` alone
    resolution_seconds=DOUBLE,  # what every measured time may be off by
    down_seconds=DOUBLE,
    catch_up_seconds=DOUBLE,
    total_seconds=DOUBLE,
    append_bytes_per_s=DOUBLE,
    moved_bytes=LONG,
    incremental_bytes=LONG,
    rate_bytes_per_s=DOUBLE,  # the model's, and what it is from
    rate_from=STRING,
    model_seconds=DOUBLE,  # of the catch-up; null when it never ends
    model_bytes=LONG,
    held_bytes=LONG,
    empty_seconds=DOUBLE,  # the same rotation without its volume; null when it never ends
    empty_bytes=LONG,
    gross_cost=MONEY,
    incremental_cost=MONEY,
    empty_cost=MONEY,
)

# One way to run one cluster, at so many rotations a month.
ECONOMICS = struct(
    billing_period=STRING,
    cluster=STRING,
    design=STRING,  # core.cost.economics.EBS, .NVME, .IN_PLACE
    instance_type=STRING,
    brokers=INTEGER,
    instances_cost=MONEY,
    storage_cost=MONEY,
    rotation_cost=MONEY,
    rotation_seconds=DOUBLE,  # null when a broker never gets back
    limited_by=STRING,
    fill=DOUBLE,
    rotations_per_month=DOUBLE,
    rotations_ratio=DOUBLE,
    monthly_cost=MONEY,
    risk_hours=DOUBLE,
    break_even_fill=DOUBLE,
    break_even_rotations=DOUBLE,  # null: never
    chosen=BOOLEAN,
    region=STRING,
    prices_as_of=DATE,
)

# What a cluster costs a day, and what it did for it.
UNIT = struct(
    billing_period=STRING,
    day=DATE,
    cluster=STRING,
    complete=BOOLEAN,  # whether the day is over and its lines have come
    cost=MONEY,  # net, amortised
    produced_gib=DOUBLE,
    retained_gib=DOUBLE,
    partitions=DOUBLE,  # replicas on brokers
    brokers=INTEGER,
    cost_per_produced_gib=DOUBLE,
    cost_per_retained_gib_month=DOUBLE,
    cost_per_partition_month=DOUBLE,
    cost_per_broker_month=DOUBLE,
)

# How many days must come before one for it to stand out.
FEWEST_BEFORE = 5
# A day that stands out.
ANOMALIES = struct(
    billing_period=STRING,
    day=DATE,
    cluster=STRING,
    component=STRING,
    cost=MONEY,
    usual=MONEY,  # the median of the days before
    excess=MONEY,
    score=DOUBLE,  # distance from the median, in robust standard deviations
    owner=STRING,  # whose charges moved most
    zone=STRING,
    owner_excess=MONEY,
    rotations=INTEGER,  # of the cluster, on that day and the one before
    reason=STRING,
)

STORAGE_TABLE = Table("storage", STORAGE)
RESYNC_TABLE = Table("resync", RESYNC)
ECONOMICS_TABLE = Table("economics", ECONOMICS)
UNIT_TABLE = Table("unit", UNIT)
ANOMALIES_TABLE = Table("anomalies", ANOMALIES)
