"""What λ volumes is told beside handlers.settings; infra.functions.volumes renders it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.errors import InvalidInput
from core.settings import prometheus_address
from core.settings.prometheus_address import Address
from core.volumes import policy
from core.volumes.limits import Gp3, Performance
from core.volumes.policy import Policy

VARIABLE = "STILLWATER_VOLUMES"


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The policy of a pool, and what the ClusterSpec asks of each of its volumes."""

    policy: Policy
    volumes: tuple[Gp3, ...]


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Where Prometheus is, and what tells this cluster's series from others that are there."""

    address: Address
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VolumeSettings:
    """The policies by KafkaNodePool, the budget, and whether anything may be changed."""

    applies: bool
    frozen: bool
    budget_usd: Decimal | None
    pools: Mapping[str, PoolSettings]
    prometheus: PrometheusSettings | None = None

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> VolumeSettings:
        """Read the environment; raises InvalidInput with the remedy."""
        text = environment.get(VARIABLE, "")
        try:
            return _read(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            problem = (
                f"{VARIABLE} is not what the operations stack renders ({error}); run `pulumi up` "
                f"on it again."
            )
            raise InvalidInput([problem]) from None


def _read(document: Mapping[str, Any]) -> VolumeSettings:
    applies = document["mode"] == "apply"
    budget, asked = document["budget_usd"], document["prometheus"]
    pools = {}
    for entry in document["pools"]:
        settings = PoolSettings(
            policy=policy.from_json(entry["policy"]),
            volumes=tuple(Gp3(size, Performance(*rest)) for size, *rest in entry["volumes"]),
        )
        pools.update(dict.fromkeys(entry["pools"], settings))
    return VolumeSettings(
        applies=applies,
        frozen=document["frozen"],
        budget_usd=None if budget is None else Decimal(budget),
        pools=pools,
        prometheus=None
        if asked is None
        else PrometheusSettings(prometheus_address.parse(asked["address"]), asked["labels"]),
    )
