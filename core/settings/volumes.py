"""Defines what λ volumes and λ samples are told: policies and the budget, and whom to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from core.settings.functions import KEPT, InCluster, InKafka
from core.volumes.sizing import Gp3, Policy


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The policy of a pool, and what the ClusterSpec asks of each of its volumes."""

    policy: Policy
    volumes: tuple[Gp3, ...]


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Where Prometheus is (core.settings.functions), and which series there are ours."""

    address: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VolumeSettings:
    """The policies by KafkaNodePool."""

    applies: bool
    frozen: bool
    budget_usd: Decimal | None
    pools: Mapping[str, PoolSettings]
    prometheus: PrometheusSettings | None = None


@dataclass(frozen=True, kw_only=True)
class VolumesSettings(InKafka):
    """λ volumes."""

    volumes: VolumeSettings = field(metadata=KEPT)


@dataclass(frozen=True, kw_only=True)
class SamplesSettings(InCluster):
    """λ samples."""

    samples_bucket: str
    prometheus: PrometheusSettings
