"""The shapes of every table a job reads or writes.

A bill's lines are summed once, to a day per resource and meter: that is USAGE, the normalised bill,
a hundredth of its size. COST, TRANSFER and every later job are made from USAGE. Money is decimal;
times are UTC.
"""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

STRING, DOUBLE, LONG, INTEGER = pa.string(), pa.float64(), pa.int64(), pa.int32()
DATE, BOOLEAN = pa.date32(), pa.bool_()
# As Spark carries times: microseconds of UTC.
MOMENT = pa.timestamp("us", "UTC")
MONEY = QUANTITY = pa.decimal128(38, 18)


def struct(**columns: pa.DataType) -> pa.Schema:
    """Return a row's shape from its columns, in order."""
    return pa.schema(list(columns.items()))


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
    component=STRING,  # spark.rules.names.Component
    attribution=STRING,  # spark.rules.names.Attribution
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
    flow=STRING,  # spark.rules.names.Flow
    certainty=STRING,  # spark.rules.names.Certainty
    currency=STRING,
    billed_bytes=LONG,  # as billed: a byte between two brokers counts on both its sides
    billed_cost=MONEY,
    amortised_cost=MONEY,
    net_cost=MONEY,
    rack_aware_saving=MONEY,  # of billed_cost: what fetching from the own zone would leave out
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
    kind=STRING,  # spark.transforms.node_shares.ShareKind
    paid_by=STRING,  # how its hours were paid for; null where nothing was allocated
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
