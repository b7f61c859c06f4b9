"""Defines what λ samples is told: which Prometheus it asks, and where it files the answers."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings.functions import InCluster
from core.settings.volumes import PrometheusSettings


@dataclass(frozen=True, kw_only=True)
class SamplesSettings(InCluster):
    """λ samples."""

    samples_bucket: str
    prometheus: PrometheusSettings
