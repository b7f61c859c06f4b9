"""Defines what the probe is told: where Kafka is, who it is there, what a good attempt is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Where the Secrets of its Deployment are mounted.
AUTHORITY_DIRECTORY = "/var/run/stillwater/authority"
USER_DIRECTORY = "/var/run/stillwater/user"
PORT = 8080
ATTEMPTS = "stillwater_probe_attempts_total"
FAILED = "stillwater_probe_failed_total"
SECONDS = "stillwater_probe_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBudget:
    """What one rotation may spend of the clients' error budget, and who counts it."""

    # Where Prometheus is (core.settings.prometheus_address), and which series there are ours.
    address: str
    labels: Mapping[str, str]
    objective_percent: float
    # Of the budget of 30 days, since a person last said that the run may go on.
    rotation_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """Settings of `handlers.probe`."""

    bootstrap: tuple[str, ...]
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    user: str
    topic: str
    replication_factor: int
    # An attempt that is not read back within this has failed.
    latency_seconds: float
    authority_directory: str = AUTHORITY_DIRECTORY
    user_directory: str = USER_DIRECTORY
    host: str = "0.0.0.0"  # noqa: S104 - a pod's own address, which Prometheus asks
    port: int = PORT
