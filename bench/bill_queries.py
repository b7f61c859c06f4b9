"""The queries of bench.analytics for the engines beside Spark: the same bill, the same sums.

Money is added up in trillionths of a dollar, whole numbers, as the jobs do; the amortised formula
and the components are those of spark.transforms, written once more by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

KIND = "line_item_line_item_type"
COST = "line_item_unblended_cost"
PLAIN = ("Usage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "DiscountedUsage")
PREFIX = r"^(?:(?:[A-Z]{3}\d|EU)-){1,2}"
COMPONENTS = (
    ("broker compute", r"^(BoxUsage|SpotUsage|DedicatedUsage|HostUsage|EBSOptimized)(:|$)"),
    ("gp3 storage", r"^EBS:VolumeUsage\.gp3$"),
    ("gp3 IOPS", r"^EBS:VolumeP-IOPS\.gp3$"),
    ("gp3 throughput", r"^EBS:VolumeP-Throughput\.gp3$"),
    ("snapshots", r"^EBS:(Snapshot|FastSnapshotRestore)"),
    ("inter-AZ transfer", r"^(DataTransfer-Regional-Bytes|VpcPeering-(In|Out)-Bytes)$"),
    ("load balancer", r"^(LoadBalancerUsage|LCUUsage)$"),
    ("PrivateLink", r"^VpcEndpoint-(Hours|Bytes|Service-Hours)"),
    ("NAT gateway", r"^(Regional)?NatGateway-(Prvd-)?(Hours|Bytes|Gbps)"),
    ("control plane", r"^AmazonEKS-Hours:"),
)
TAGS = {
    "cluster": "user_stillwater_cluster",
    "pool": "user_stillwater_pool",
    "claim": "user_kubernetes_io_created_for_pvc_name",
    "node_group": "user_eks_nodegroup_name",
}
_WHENS = " ".join(f"WHEN regexp_matches(ut, '{rule}') THEN '{name}'" for name, rule in COMPONENTS)
# In two grains, as the jobs keep a bill: of lines that are not Kafka's neither resource nor tags.
_OURS = " OR ".join(f"resource_tags['{TAGS[name]}'] IS NOT NULL" for name in ("cluster", "pool"))
_TAGS = ", ".join(
    f"CASE WHEN {_OURS} THEN resource_tags['{key}'] END AS {name}" for name, key in TAGS.items()
)
_AMORTISED = f"""CASE {KIND}
    WHEN 'Usage' THEN {COST}
    WHEN 'SavingsPlanCoveredUsage' THEN savings_plan_savings_plan_effective_cost
    WHEN 'SavingsPlanRecurringFee'
        THEN savings_plan_total_commitment_to_date - savings_plan_used_commitment
    WHEN 'SavingsPlanNegation' THEN 0
    WHEN 'SavingsPlanUpfrontFee' THEN 0
    WHEN 'DiscountedUsage' THEN reservation_effective_cost
    WHEN 'RIFee' THEN reservation_unused_amortized_upfront_fee_for_billing_period
        + reservation_unused_recurring_fee
    ELSE {COST} END"""


def _exact(expression: str) -> str:
    return f"sum(CAST(round(({expression}) * 1e12) AS BIGINT))"


_USAGE = f"""
CREATE OR REPLACE TEMP TABLE usage AS
WITH summed AS (
    SELECT BILLING_PERIOD AS period, CAST(line_item_usage_start_date AS DATE) AS day,
        bill_billing_entity AS provider, line_item_usage_account_id AS account,
        line_item_currency_code AS currency, {KIND} AS category,
        line_item_product_code AS service, line_item_usage_type AS usage_type,
        line_item_operation AS operation,
        CASE WHEN {KIND} NOT IN {PLAIN} THEN line_item_line_item_description END AS description,
        pricing_unit AS unit, CASE WHEN {_OURS} THEN line_item_resource_id END AS resource_id,
        CASE WHEN {_OURS} THEN line_item_availability_zone END AS zone, {_TAGS},
        count(*) AS charges,
        {_exact("CASE WHEN " + KIND + " <> 'SavingsPlanNegation' THEN line_item_usage_amount END")}
            AS quantity,
        {_exact(COST)} AS billed, {_exact(_AMORTISED)} AS amortised,
        {_exact("coalesce(line_item_net_unblended_cost, " + _AMORTISED + ")")} AS net
    FROM read_parquet('$BILL/data/*/*.parquet', hive_partitioning=true, hive_types_autocast=0)
    GROUP BY ALL
), tidy AS (
    SELECT *, regexp_replace(usage_type, '{PREFIX}', '') AS ut FROM summed
)
SELECT *, CASE WHEN operation = 'EKSPod-EC2' THEN 'split cost allocation'
    WHEN category NOT IN {PLAIN} OR provider <> 'AWS' THEN 'other'
    {_WHENS} ELSE 'other' END AS component FROM tidy"""  # noqa: S608 - our own names
_COST = """COPY (SELECT period, day, component, cluster, pool, claim, zone, currency,
    sum(charges), sum(billed), sum(amortised), sum(net) FROM usage GROUP BY ALL)
    TO '$OUT/cost.parquet' (FORMAT parquet)"""
_TRANSFER = """COPY (SELECT period, day, cluster, component, currency, sum(quantity) AS quantity,
    sum(billed), sum(amortised), sum(net) FROM usage
    WHERE component IN ('inter-AZ transfer', 'load balancer', 'PrivateLink') GROUP BY ALL)
    TO '$OUT/transfer.parquet' (FORMAT parquet)"""
_KEEP = "COPY (SELECT * FROM usage) TO '$OUT/usage.parquet' (FORMAT parquet)"
DUCKDB = {"cost": (_USAGE, _KEEP, _COST), "transfer": (_TRANSFER,)}


def polars_tables(
    bill: Path, out: Path
) -> tuple[Callable[[], None], Callable[[], None], Callable[[], int]]:
    """Return what makes the cost table, what makes the transfer table, and the bill's total."""
    import polars as pl  # noqa: PLC0415 - its threads are chosen before it is imported

    held: dict[str, Any] = {}
    kind, cost = pl.col(KIND), pl.col(COST)

    def exact(value: Any) -> Any:
        return (value * 1e12).round().cast(pl.Int64).sum()

    unused = pl.col("savings_plan_total_commitment_to_date") - pl.col(
        "savings_plan_used_commitment"
    )
    fee = pl.col("reservation_unused_amortized_upfront_fee_for_billing_period") + pl.col(
        "reservation_unused_recurring_fee"
    )
    amortised = (
        pl.when(kind == "SavingsPlanCoveredUsage")
        .then("savings_plan_savings_plan_effective_cost")
        .when(kind == "SavingsPlanRecurringFee")
        .then(unused)
        .when(kind.is_in(["SavingsPlanNegation", "SavingsPlanUpfrontFee"]))
        .then(0.0)
        .when(kind == "DiscountedUsage")
        .then("reservation_effective_cost")
        .when(kind == "RIFee")
        .then(fee)
        .otherwise(cost)
    )
    plain = kind.is_in(list(PLAIN))
    tag = pl.col("resource_tags").map.get
    is_ours = tag(TAGS["cluster"]).is_not_null() | tag(TAGS["pool"]).is_not_null()

    def usage() -> Any:
        keys = [
            pl.col("BILLING_PERIOD").alias("period"),
            pl.col("line_item_usage_start_date").cast(pl.Date).alias("day"),
            pl.col("bill_billing_entity").alias("provider"),
            pl.col("line_item_usage_account_id").alias("account"),
            pl.col("line_item_currency_code").alias("currency"),
            kind.alias("category"),
            pl.col("line_item_product_code").alias("service"),
            pl.col("line_item_usage_type").alias("usage_type"),
            pl.col("line_item_operation").alias("operation"),
            pl.when(~plain).then("line_item_line_item_description").alias("description"),
            pl.col("pricing_unit").alias("unit"),
            pl.when(is_ours).then("line_item_resource_id").alias("resource_id"),
            pl.when(is_ours).then("line_item_availability_zone").alias("zone"),
            *(pl.when(is_ours).then(tag(key)).alias(name) for name, key in TAGS.items()),
        ]
        used = pl.when(kind != "SavingsPlanNegation").then("line_item_usage_amount")
        summed = (
            pl.scan_parquet(
                bill / "data",
                hive_partitioning=True,
                hive_schema={"BILLING_PERIOD": pl.String},
            )
            .group_by(keys)
            .agg(
                charges=pl.len(),
                quantity=exact(used),
                billed=exact(cost),
                amortised=exact(amortised),
                net=exact(pl.coalesce("line_item_net_unblended_cost", amortised)),
            )
            .collect(engine="streaming")
        )
        bare = pl.col("usage_type").str.replace(PREFIX, "")
        component = pl.lit("other")
        for name, rule in reversed(COMPONENTS):
            component = pl.when(bare.str.contains(rule)).then(pl.lit(name)).otherwise(component)
        aside = ~pl.col("category").is_in(list(PLAIN)) | (pl.col("provider") != "AWS")
        return summed.with_columns(
            component=pl.when(pl.col("operation") == "EKSPod-EC2")
            .then(pl.lit("split cost allocation"))
            .when(aside)
            .then(pl.lit("other"))
            .otherwise(component)
        )

    def totals(frame: Any, *keys: str) -> Any:
        return frame.group_by(keys).agg(
            pl.col("charges", "quantity", "billed", "amortised", "net").sum()
        )

    def costs() -> None:
        held["usage"] = usage()
        held["usage"].write_parquet(out / "usage.parquet")
        keys = ("period", "day", "component", "cluster", "pool", "claim", "zone", "currency")
        totals(held["usage"], *keys).write_parquet(out / "cost.parquet")

    def transfers() -> None:
        chosen = held["usage"].filter(
            pl.col("component").is_in(["inter-AZ transfer", "load balancer", "PrivateLink"])
        )
        table = totals(chosen, "period", "day", "cluster", "component", "currency")
        table.write_parquet(out / "transfer.parquet")

    # In Python: a bill of more than nine million in trillionths is more than 64 bits hold.
    return costs, transfers, lambda: sum(held["usage"]["billed"].to_list())
