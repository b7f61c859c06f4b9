"""Volumes that grow and speed up by themselves: what λ volumes may do, in all and per pool."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from core.cluster.fields import Frozen
from core.volumes import limits


class VolumePolicy(Frozen):
    """How a pool's volumes grow and speed up; what `volumes` of the pool asks for is their floor.

    Strimzi sizes the volumes of a node pool and zone together, so they change together.
    """

    act_days: Annotated[float, Field(ge=0.25, le=30)] = 3.0
    """Volumes are grown when the growth of so many days fits no more."""
    headroom_days: Annotated[float, Field(ge=1, le=365)] = 14.0
    """Until the growth of so many days fits."""
    free_percent: Annotated[int, Field(ge=5, le=50)] = 15
    """What stays free even then."""
    step_gib: Annotated[int, Field(ge=1, le=1024)] = 10
    """Sizes are multiples of it."""
    max_size_gib: Annotated[int, Field(ge=1, le=limits.LARGEST_GIB)] = limits.LARGEST_GIB
    """No volume is grown beyond it."""
    max_iops: Annotated[int, Field(ge=limits.LEAST_IOPS, le=limits.MOST_IOPS)] = limits.MOST_IOPS
    """None is raised beyond it, nor beyond what its instance sustains."""
    max_throughput_mib_per_s: Annotated[
        int, Field(ge=limits.LEAST_MIB_PER_S, le=limits.MOST_MIB_PER_S)
    ] = limits.MOST_MIB_PER_S
    """None is raised beyond it, nor beyond what its instance sustains."""
    exceeded_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """Volumes are raised when more than they give was asked for this part of the last hour."""
    quiet_hours: Annotated[int, Field(ge=6, le=168)] = 24
    """Raised volumes are lowered after so many hours in which less would have sufficed."""
    reserved_modifications: Annotated[int, Field(ge=1, le=3)] = 1
    """Of AWS's four per volume in 24 hours, those kept for a volume that is nearly full."""
    usd_per_minute_saved: Annotated[Decimal, Field(ge=0, le=1000)] = Decimal(0)
    """What a minute less of resync is worth, per broker: for a rotation volumes are made faster
    where that costs less. 0: never.
    """

    @model_validator(mode="after")
    def _sooner_than_headroom(self) -> Self:
        if self.act_days >= self.headroom_days:
            raise ValueError(
                f"act_days {self.act_days:g} is not less than headroom_days "
                f"{self.headroom_days:g}: a volume just grown would ask to be grown again; raise "
                f"headroom_days"
            )
        return self


class Volumes(Frozen):
    """What λ volumes may do to Kafka's volumes."""

    mode: Literal["advise", "apply"] = "advise"
    """`advise`: decisions are told, nothing is changed. `apply`: the volumes in the KafkaNodePools
    are changed by it, and no more by `stillwater up`.
    """
    max_monthly_increase_usd: Annotated[Decimal, Field(ge=0, le=1_000_000_000)] | None = None
    """What all volumes may cost a month above what the pools' `volumes` ask for. Null: no limit,
    which `apply` does not accept.
    """
    frozen: bool = False
    """Nothing is changed until it is false again. For one node pool, and at once:
    `kubectl annotate kafkanodepool NAME stillwater.dev/freeze-volumes=REASON`.
    """

    @property
    def applies(self) -> bool:
        return self.mode == "apply"

    @model_validator(mode="after")
    def _has_a_budget(self) -> Self:
        if self.applies and self.max_monthly_increase_usd is None:
            raise ValueError(
                "volumes.mode is apply and volumes.max_monthly_increase_usd is not set; set what "
                "the volumes may cost a month above the spec, 0 for nothing"
            )
        return self
