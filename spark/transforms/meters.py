"""Says of a charge, by its meter, why bytes moved."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.transforms.classify import Component
from spark.transforms.transfer import Flow


def billed_flow() -> Column:
    """Return the flow that a line's own meter says, or null of what is no transfer."""
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
        .when(component != Component.INTER_AZ.value, F.lit(None))
        .when(is_peering, F.lit(Flow.PEERING.value))
        .when(is_of_a_load_balancer, F.lit(Flow.LOAD_BALANCER_ZONES.value))
        .otherwise(F.lit(Flow.UNEXPLAINED.value))
    )
