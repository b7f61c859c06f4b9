"""The gate that everybody who evicts one of Kafka's pods has to pass."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from core.cluster.fields import Frozen
from core.cluster.kafka import image_name


def _versioned(value: str) -> str:
    name = image_name(value).rpartition("/")[2]
    _, _, tag = name.partition(":")
    if "@sha256:" not in name and tag in {"", "latest"}:
        raise ValueError(
            f"{value} names no version, so two replicas may run two; end it with a tag other than "
            f"latest, or with a digest, such as registry.example/stillwater-gate:1.4"
        )
    return value


class EvictionGate(Frozen):
    """Two replicas on the system nodes, asked by the API server before a Kafka pod is evicted."""

    image: Annotated[str, AfterValidator(_versioned)]
    """The image of the gate, built from this repository: `docker build --target gate`."""
    reading_age_seconds: Annotated[int, Field(ge=1, le=30)] = 2
    """How old a reading may be that a refusal rests on. Whoever is let through is let through on
    one that was begun after the lease was taken.
    """
    operators: tuple[str, ...] = ()
    """Accounts whose deletions of Kafka's pods are not asked about, beside Strimzi's own: another
    operator's, as `system:serviceaccount:NAMESPACE:NAME`.
    """
