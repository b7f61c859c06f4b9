"""Says why bytes moved and what that cost: transfer lines by their meter, inter-AZ bytes by flow.

The bill knows that bytes crossed zones, not why. A cluster's own counters do: what producers sent,
what followers fetched, what consumers read. With brokers in Z zones, balanced, (Z-1)/Z of what is
produced crosses on its way in and (Z-1)/Z of what is consumed on its way out, unless consumers
fetch from their own zone: where brokers let them and nobody knows which do, no more is theirs than
the bill leaves beside the other flows. What followers fetch crosses whole, since replicas stand in
different zones. A broker's account is billed once for a byte from or to a client, and on both sides
for one between brokers. The billed money is shared out by these bytes, never more of them than were
billed; what no flow explains stays visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.expressions import surely
from spark.schemas import MONEY, TRANSFER, require_schema
from spark.transforms.classify import Component
from spark.transforms.traffic import NOT_RACK_AWARE, POSSIBLE, RACK_AWARE

# AWS writes GB and bills GiB.
BYTES_PER_GB = 1 << 30
COSTS = ("billed_cost", "amortised_cost", "net_cost")
KEYS = ("billing_period", "day", "cluster", "flow", "currency")
# Wide enough for a cluster's money on a day and for a share of it, in one multiplication.
_COST, _SHARE = "decimal(24,12)", "decimal(13,12)"


class Flow(StrEnum):
    """Why bytes moved, in the order the report lists it."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    CONSUME = "consume"
    UNEXPLAINED = "between zones, flow not known"
    LOAD_BALANCER_ZONES = "load balancer between zones"
    PEERING = "peering"
    LOAD_BALANCER = "load balancer"
    PRIVATELINK = "PrivateLink"


class Certainty(StrEnum):
    """How a row's money was found."""

    BILLED = "billed"
    SHARED = "shared"
    # What consumers may have fetched from other zones, of which some may have stayed in their own.
    AT_MOST = "at most"


_COMPONENTS = (Component.INTER_AZ, Component.LOAD_BALANCER, Component.PRIVATELINK)
MEASURED = (Flow.PRODUCE, Flow.REPLICATE, Flow.CONSUME)


def transfer_costs(usage: DataFrame) -> DataFrame:
    """Return what transfer cost, from USAGE: KEYS, `billed_bytes` and the costs.

    Bytes between zones are of one flow that is not known.
    """
    chosen = usage.where(F.col("component").isin(*(c.value for c in _COMPONENTS)))
    is_bytes = surely(F.col("unit").rlike("^Gi?B$"))
    size = F.when(is_bytes, F.col("quantity")).otherwise(F.lit(0)).cast("decimal(38,12)")
    rows = chosen.withColumns({"flow": _billed_flow(), "_gb": size})
    size_bytes = F.round(F.sum("_gb").cast("decimal(27,12)") * F.lit(BYTES_PER_GB)).cast("long")
    return rows.groupBy(*KEYS).agg(
        F.coalesce(size_bytes, F.lit(0)).alias("billed_bytes"),
        *(F.sum(cost).cast(MONEY).alias(cost) for cost in COSTS),
    )


def by_flow(transfers: DataFrame, traffic: DataFrame) -> DataFrame:
    """Share what crossing zones cost among flows, by TRAFFIC: the TRANSFER table.

    A cluster and day without counters keeps one row, whose flow is not known. What the rows of a
    cluster and day hold adds up to what was billed.
    """
    crossing = F.col("flow") == Flow.UNEXPLAINED.value
    sizes = (c.alias(n) for n, c in _crossing().items())
    known = traffic.select("day", "cluster", "rack_aware_consumers", *sizes)
    joined = (
        transfers.where(crossing)
        .join(known, ["day", "cluster"], "left")
        .withColumn("_consume", _consumed_bytes())
    )
    shared = joined.select("*", F.inline(_parts()).alias(*_PART))
    is_rest = F.col("_flow") == Flow.UNEXPLAINED.value
    wanted = shared.where((F.col("_share") > 0) | (is_rest & _is_worth_a_row()))
    rows = wanted.select(
        *("billing_period", "day", "cluster"),
        F.col("_flow").alias("flow"),
        F.when(is_rest, Certainty.BILLED.value)
        .when(_is_at_most(), Certainty.AT_MOST.value)
        .otherwise(Certainty.SHARED.value)
        .alias("certainty"),
        "currency",
        *(F.col(f"_{name}").alias(name) for name in ("billed_bytes", *COSTS)),
        F.when(F.col("_flow") == Flow.CONSUME.value, F.col("_billed_cost"))
        .otherwise(F.lit(0))
        .cast(MONEY)
        .alias("rack_aware_saving"),
    )
    others = transfers.where(~crossing).withColumns(
        {"certainty": F.lit(Certainty.BILLED.value), "rack_aware_saving": F.lit(0).cast(MONEY)}
    )
    table = rows.unionByName(others.select(*rows.columns))
    return require_schema(table, TRANSFER, "The transfer table")


def _consumed_bytes() -> Column:
    """Return the bytes of consumers: where they may stay in their zone, what the bill leaves."""
    left = F.col("billed_bytes") - F.col("_produce") - F.col("_replicate")
    within = F.least(F.col("_consume"), F.greatest(left, F.lit(0.0)))
    is_open = F.col("rack_aware_consumers") == POSSIBLE
    return F.when(is_open, within).otherwise(F.col("_consume"))


def _is_at_most() -> Column:
    not_allowed = surely(F.col("rack_aware_consumers") == NOT_RACK_AWARE)
    return (F.col("_flow") == Flow.CONSUME.value) & ~not_allowed


def _billed_flow() -> Column:
    """Return the flow that a line's own meter says."""
    is_peering = F.col("usage_type").startswith("VpcPeering") | F.col("operation").startswith(
        "VPCPeering"
    )
    is_of_a_load_balancer = F.col("resource_id").contains(":loadbalancer/") | F.col(
        "operation"
    ).startswith("LoadBalancing")
    component = F.col("component")
    return (
        F.when(component == Component.LOAD_BALANCER.value, F.lit(Flow.LOAD_BALANCER.value))
        .when(component == Component.PRIVATELINK.value, F.lit(Flow.PRIVATELINK.value))
        .when(is_peering, F.lit(Flow.PEERING.value))
        .when(is_of_a_load_balancer, F.lit(Flow.LOAD_BALANCER_ZONES.value))
        .otherwise(F.lit(Flow.UNEXPLAINED.value))
    )


def _crossing() -> dict[str, Column]:
    """Return, by flow, the bytes that counters say were billed for crossing zones."""
    remote = F.when(F.col("zones") > 1, (F.col("zones") - 1) / F.col("zones")).otherwise(F.lit(0.0))
    in_own_zone = surely(F.col("rack_aware_consumers") == RACK_AWARE)
    both_sides = F.when(F.col("zones") > 1, F.lit(2.0)).otherwise(F.lit(0.0))
    return {
        "_produce": F.col("produced_bytes") * remote,
        "_replicate": F.col("replicated_bytes") * both_sides,
        "_consume": F.when(in_own_zone, F.lit(0.0)).otherwise(F.col("consumed_bytes") * remote),
    }


_PART = ("_flow", "_share", "_billed_bytes", *(f"_{cost}" for cost in COSTS))


def _parts() -> Column:
    """Return a day's crossing money as one struct per flow, the rest last."""
    sizes = {flow: F.coalesce(F.col(f"_{flow.value}"), F.lit(0.0)) for flow in MEASURED}
    counted = reduce(lambda left, right: left + right, sizes.values())
    # Counters may see more than was billed (a scrape too many): then the bill is all there is.
    whole = F.greatest(counted, F.col("billed_bytes").cast("double"))
    shares = {
        flow: F.when(whole > 0, size / whole).otherwise(F.lit(0.0)) for flow, size in sizes.items()
    }
    parts = {flow: _part(share) for flow, share in shares.items()}
    rest = {
        name: reduce(lambda left, part: left - part[name], parts.values(), F.col(name))
        for name in ("billed_bytes", *COSTS)
    }
    rows = [_row(flow, shares[flow], parts[flow]) for flow in MEASURED]
    return F.array(*rows, _row(Flow.UNEXPLAINED, F.lit(0.0), rest))


def _part(share: Column) -> dict[str, Column]:
    size = F.floor(F.col("billed_bytes") * share).cast("long")
    costs = {cost: F.col(cost).cast(_COST) * share.cast(_SHARE) for cost in COSTS}
    return {"billed_bytes": size, **{cost: part.cast(MONEY) for cost, part in costs.items()}}


def _row(flow: Flow, share: Column, amounts: Mapping[str, Column]) -> Column:
    return F.struct(
        F.lit(flow.value).alias("_flow"),
        share.alias("_share"),
        amounts["billed_bytes"].cast("long").alias("_billed_bytes"),
        *(amounts[cost].cast(MONEY).alias(f"_{cost}") for cost in COSTS),
    )


def _is_worth_a_row() -> Column:
    """Say whether anything is left over, or there was nothing to share it by."""
    return (F.col("_billed_bytes") != 0) | (F.col("_billed_cost") != 0) | F.col("_produce").isNull()
