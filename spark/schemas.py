"""The shapes of every table a job reads or writes, and the guard that stands at each job's edges.

A bill's lines are summed once, to a day per resource and meter: that is USAGE, the normalised bill,
a hundredth of its size. COST, TRANSFER and every later job are made from USAGE. Money is decimal;
times are UTC.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from core.ground.errors import StillwaterError

STRING, DOUBLE, LONG, INTEGER = StringType(), DoubleType(), LongType(), IntegerType()
DATE, MOMENT, BOOLEAN = DateType(), TimestampType(), BooleanType()
MONEY = DecimalType(38, 18)
QUANTITY = DecimalType(38, 18)
TEXTS = ArrayType(STRING)


def struct(**columns: DataType) -> StructType:
    """Return a row's shape from its columns, in order."""
    return StructType([StructField(name, kind) for name, kind in columns.items()])


# An exact sum of doubles, in whole dollars and trillionths of one (spark.money).
WHOLE, TRILLIONTHS = "whole", "trillionths"
PARTS = struct(whole=LONG, trillionths=LONG)

# The normalised bill: what one resource, on one meter, cost on one day. Every dollar of the bill is
# in exactly one row; what no rule or tag knows is a row too (component `other`, `unattributed`).
USAGE = struct(
    billing_period=STRING,  # YYYY-MM, as the delivery says; the partition
    day=DATE,  # UTC day the usage began; null where it cannot be read
    provider=STRING,
    account=STRING,  # the account that used it
    currency=STRING,
    category=STRING,  # line item type (CUR) or charge category (FOCUS)
    service=STRING,  # AmazonEC2 (CUR) or Amazon Elastic Compute Cloud (FOCUS)
    usage_type=STRING,  # without the region's prefix: EBS:VolumeUsage.gp3; null in FOCUS
    operation=STRING,
    description=STRING,  # null where a usage type and a category say it all
    unit=STRING,
    resource_id=STRING,  # i-..., vol-..., an ARN; null for taxes, credits and the like
    zone=STRING,
    component=STRING,  # spark.transforms.classify.Component
    attribution=STRING,  # spark.transforms.attribute.Attribution
    cluster=STRING,
    owner=STRING,  # KafkaNodePool (broker-a), `whole cluster` or `unattributed`
    node_id=INTEGER,  # the Kafka node id, where the charge names it
    charges=LONG,  # lines of the bill in this row
    quantity=QUANTITY,  # sum over the day, in `unit`; savings plans' negations do not count
    billed_cost=MONEY,  # what the invoice asks for
    amortised_cost=MONEY,  # commitments spread over the hours they cover
    net_cost=MONEY,  # amortised, after discounts of a private agreement
)

# The cost table: USAGE without resources and meters.
COST = struct(
    billing_period=STRING,
    day=DATE,
    component=STRING,
    attribution=STRING,
    cluster=STRING,
    owner=STRING,
    node_id=INTEGER,
    zone=STRING,
    currency=STRING,
    charges=LONG,
    billed_cost=MONEY,
    amortised_cost=MONEY,
    net_cost=MONEY,
)

# The transfer table: money and bytes of what moved, by why it moved. Rows of a cluster and day add
# up to that day's transfer in USAGE.
TRANSFER = struct(
    billing_period=STRING,
    day=DATE,
    cluster=STRING,
    flow=STRING,  # spark.transforms.transfer.Flow
    certainty=STRING,  # spark.transforms.transfer.Certainty
    currency=STRING,
    billed_bytes=LONG,  # as billed: a byte between two brokers counts on both its sides
    billed_cost=MONEY,
    amortised_cost=MONEY,
    net_cost=MONEY,
    rack_aware_saving=MONEY,  # of billed_cost: what fetching from the own zone would leave out
)

# Input of the transfer job, from metrics: what a cluster's brokers took in and gave out on a day.
TRAFFIC = struct(
    day=DATE,
    cluster=STRING,
    produced_bytes=LONG,  # sum of BytesInPerSec over brokers: excludes replication
    replicated_bytes=LONG,  # sum of ReplicationBytesInPerSec over brokers
    consumed_bytes=LONG,  # sum of BytesOutPerSec over brokers: excludes replication
    zones=INTEGER,
    # Whether consumers read from their own zone: `true`; `possible` where brokers let them and each
    # consumer decides; `false` where brokers do not; null where neither is known.
    rack_aware_consumers=STRING,
)

# Split lines of a bill, as the reader leaves them: what one pod had of its node in one interval, a
# row per meter (vCPU, memory). A second view of the node's money.
POD_HOURS = struct(
    billing_period=STRING,
    at=MOMENT,  # when the interval began
    instance_id=STRING,  # the node: i-...
    eks_cluster=STRING,
    namespace=STRING,
    workload_type=STRING,  # DaemonSet, ReplicaSet, ...; null where AWS does not know the controller
    workload=STRING,
    pod=STRING,
    split_cost=DOUBLE,  # for the larger of what it asked for and what it used
    unused_cost=DOUBLE,  # its part of what no pod had
    net_split_cost=DOUBLE,
    net_unused_cost=DOUBLE,
)
# An instance's lines in one interval: there are several where a commitment covers a part of it.
NODE_HOURS = struct(
    billing_period=STRING,
    at=MOMENT,
    instance_id=STRING,
    paid_by=STRING,  # `savings plan`, `reserved`, `spot` or `on demand`
    hours=DecimalType(24, 12),
)

# What the nodes of Kafka's pools cost on a day, by what ran on them. Rows of an instance and day
# add up to its amortised cost in USAGE exactly.
NODE_SHARES = struct(
    billing_period=STRING,
    day=DATE,
    cluster=STRING,
    owner=STRING,  # KafkaNodePool (broker-a)
    zone=STRING,
    instance_id=STRING,
    currency=STRING,
    kind=STRING,  # spark.transforms.node_shares.Kind
    paid_by=STRING,  # as in NODE_HOURS; null where nothing was allocated
    eks_cluster=STRING,
    namespace=STRING,
    workload_type=STRING,
    workload=STRING,
    pod=STRING,
    split_cost=MONEY,
    unused_cost=MONEY,
    net_split_cost=MONEY,
    net_unused_cost=MONEY,
)

# A row that cannot be placed: why, and as much of it as can be read. Its dollars, where they can be
# read, are in USAGE under the component `unreadable rows`.
QUARANTINE = struct(billing_period=STRING, reason=STRING, line=STRING, billed_cost=MONEY)

# A tag of a bill on which nothing is known to be Kafka's: what there is to choose from.
TAGS_FOUND = struct(
    billing_period=STRING,
    key=STRING,  # without the export's own prefix where that is known
    value=STRING,  # the one that names Kafka, or the one with most money
    names_kafka=BOOLEAN,  # key or value says so
    different_values=LONG,  # about as many
    charges=LONG,
    billed_cost=MONEY,
)

# Which delivery of a month the tables hold: one row per billing period and bill.
DELIVERIES = struct(
    billing_period=STRING,
    bill=STRING,  # the export's name
    format=STRING,  # spark.ingest.delivery.Format
    execution=STRING,  # what tells one refresh from the next
    files=INTEGER,
    lines=LONG,
    lines_without_cost=LONG,
    quarantined=LONG,
    billed_cost=MONEY,
    previous_billed_cost=MONEY,  # of the delivery that this one replaced; null for the first
    simulated=STRING,  # `true` for a bill that no one was charged for
    ingested_at=MOMENT,
    final_on=DATE,  # AWS may still correct the month before this day
    cluster_tag=STRING,  # what meant Kafka when the tables were made: KEY, or KEY = VALUE
    pool_tag=STRING,  # and a node's pool; both null in tables of before they were noted
    notes=STRING,  # what the bill could not say, a sentence a line; null where it says all
    final_billed_cost=MONEY,  # as it was first read after final_on; null before that
    final_read_at=MOMENT,  # and when
    # Null in tables of before they were noted, all three.
    fingerprint=STRING,  # what tells the files that were read from others of their names
    told_by=STRING,  # what told Kafka's charges beside the tags: a cluster's name, its ledger
    currency=STRING,
)

# One line of any bill, as a reader leaves it and before it is summed. Its money is what the format
# delivers, double or decimal (spark.money adds both up exactly).
LINE_KEYS = struct(
    billing_period=STRING,
    day=DATE,
    provider=STRING,
    account=STRING,
    currency=STRING,
    category=STRING,
    service=STRING,
    usage_type=STRING,
    operation=STRING,
    description=STRING,
    unit=STRING,
    resource_id=STRING,
    zone=STRING,
    # Tags as they are delivered: one is looked up when there is a hundredth of the lines.
    tag_names=TEXTS,
    tag_values=TEXTS,
    reason=STRING,
)
# Why a line cannot be read is for the quarantine; past the sums it is enough that it cannot.
IS_UNREADABLE = "is_unreadable"
# 1 where the export says what remains after private discounts.
HAS_NET = "has_net"
# How many delivered lines a row of lines stands for: 1 but where a reader has added them up.
CHARGES = "charges"
# What exports write for "nothing", and what databases (\\N), Python and pandas do.
EMPTY = (
    *("", "NULL", "null", "\\N", "None", "nan", "NaN", "NaT", "<NA>"),
    # What people and spreadsheets write for it.
    *("-", "n/a", "N/A", "#N/A", "(null)", "<null>", "nil", "none"),
)
LINE_AMOUNTS = ("quantity", "billed_cost", "amortised_cost", "net_cost")


def require_schema(frame: DataFrame, expected: StructType, what: str) -> DataFrame:
    """Return the frame's columns in the expected order, or say which column is missing or wrong.

    Nullability is not compared: Spark widens it freely.
    """
    found = {field.name: field.dataType for field in frame.schema.fields}
    wanted = {field.name: field.dataType for field in expected.fields}
    _refuse(
        what,
        [
            f"column {name} is missing" if name not in found else f"column {name} is {found[name]}"
            for name, kind in wanted.items()
            if found.get(name) != kind
        ]
        + [f"column {name} is unexpected" for name in found if name not in wanted],
    )
    return frame.select(*wanted)


def require_lines(frame: DataFrame, what: str) -> DataFrame:
    """Return a bill's lines, or say which column has not the shape that every reader must give."""
    found = {field.name: field.dataType for field in frame.schema.fields}
    keys = {field.name: field.dataType for field in LINE_KEYS.fields}
    amounts = {name: found.get(name) for name in LINE_AMOUNTS}
    problems = [
        f"column {name} is {found.get(name, 'missing')}"
        for name, kind in keys.items()
        if found.get(name) != kind
    ]
    problems += [
        f"column {name} is {kind}, neither double, {MONEY} nor a sum's parts"
        for name, kind in amounts.items()
        if kind not in (DOUBLE, MONEY, PARTS)
    ]
    _refuse(what, problems)
    return frame.select(*keys, HAS_NET, CHARGES, *amounts)


def _refuse(what: str, problems: list[str]) -> None:
    if problems:
        raise StillwaterError(f"{what} has not the shape it must have: {'; '.join(problems)}.")
