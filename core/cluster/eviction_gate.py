"""Describes the gate that everybody who evicts one of Kafka's pods has to pass."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from core.cluster.fields import SUBDOMAIN, Frozen, each_once
from core.cluster.images import VersionedImage

_SERVICE_ACCOUNT = re.compile(
    rf"system:serviceaccount:[a-z0-9]([a-z0-9-]{{0,61}}[a-z0-9])?:(?=.{{1,253}}$){SUBDOMAIN}"
)


class EvictionGate(Frozen):
    """Two replicas on the system nodes, asked by the API server before a Kafka pod is evicted."""

    image: VersionedImage
    """The image of the gate, built from this repository: `docker build --target gate`."""
    reading_age_seconds: Annotated[int, Field(ge=1, le=30)] = 2
    """How old a reading may be that a refusal rests on. Whoever is let through is let through on
    one that was begun after the lease was taken.
    """
    operators: tuple[str, ...] = ()
    """Accounts whose deletions of Kafka's pods are not asked about, beside Strimzi's own: another
    operator's, as `system:serviceaccount:NAMESPACE:NAME`.
    """

    @field_validator("operators")
    @classmethod
    def _are_service_accounts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for account in value:
            if _SERVICE_ACCOUNT.fullmatch(account) is None:
                raise ValueError(
                    f"{account[:80]!r} is no service account; write it as "
                    f"system:serviceaccount:NAMESPACE:NAME"
                )
        return each_once(value)
