"""The words every verdict about health is made of, and how several become one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How a part does; the order of severity is that of `SEVERITY`."""

    HEALTHY = "healthy"
    STARTING = "starting"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"  # a source that is needed did not answer
    UNHEALTHY = "unhealthy"

    @classmethod
    def _missing_(cls, value: object) -> Health:
        """Take a word of another release for what it is here: nobody knows how the part does."""
        del value
        return cls.UNKNOWN


SEVERITY = (Health.HEALTHY, Health.STARTING, Health.DEGRADED, Health.UNKNOWN, Health.UNHEALTHY)
# The contract of KIP-1017, for the whole cluster: 500 says unhealthy, or unable to tell.
STATUS_CODES = {
    Health.HEALTHY: 200,
    Health.STARTING: 503,
    Health.DEGRADED: 503,
    Health.UNKNOWN: 500,
    Health.UNHEALTHY: 500,
}


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """How a part does, the complete sentence that says why, and the sources that were missing."""

    health: Health
    reason: str
    missing: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.health is Health.HEALTHY


def healthy(reason: str) -> HealthVerdict:
    """Return the verdict of a part that is well."""
    return HealthVerdict(Health.HEALTHY, reason)


def degraded(reason: str) -> HealthVerdict:
    """Return the verdict of a part that does its work, and not all of it."""
    return HealthVerdict(Health.DEGRADED, reason)


def unhealthy(reason: str) -> HealthVerdict:
    """Return the verdict of a part that does not do its work."""
    return HealthVerdict(Health.UNHEALTHY, reason)


def not_known(reason: str, missing: tuple[str, ...] = ()) -> HealthVerdict:
    """Return the verdict on a part of which too little was told, and by whom it was not."""
    return HealthVerdict(Health.UNKNOWN, reason, missing)
