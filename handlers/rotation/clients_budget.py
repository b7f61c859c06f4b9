"""Reads from Prometheus what the probe counted since a run went on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.availability.budget import Spent
from core.ground.errors import StillwaterError
from core.settings import prometheus_address
from core.settings.probe import ATTEMPTS, FAILED, ProbeBudget
from handlers.adapters.eks import EksApi
from handlers.adapters.prometheus import Prometheus, route

# An increase needs several scrapes, which come a minute apart at most.
LEAST_SECONDS = 300.0


@dataclass(frozen=True)
class ClientsBudget:
    """The budget of one cluster's clients."""

    prometheus: Prometheus
    settings: ProbeBudget
    namespace: str
    cluster: str

    @classmethod
    def connect(
        cls, settings: ProbeBudget, namespace: str, cluster: str, api: EksApi
    ) -> ClientsBudget:
        address = prometheus_address.parse(settings.address)
        return cls(Prometheus(route(address, api)), settings, namespace, cluster)

    def spending(self, since: float, now: float) -> Spent:
        """Return what failed since then; what cannot be read is a sentence, and raises nothing."""
        seconds = max(LEAST_SECONDS, now - since)
        found = Spent(
            objective_percent=self.settings.objective_percent,
            allowed_percent=self.settings.rotation_percent,
            seconds=seconds,
        )
        try:
            attempts = self._increase(ATTEMPTS, seconds, now)
            failed = self._increase(FAILED, seconds, now)
        except StillwaterError as error:
            return replace(found, silence=str(error))
        if not attempts or failed is None:
            said = f"Prometheus knows of no attempt of the probe within {seconds:.0f} s."
            return replace(found, silence=said)
        return replace(found, attempts=attempts, failed=failed)

    def _increase(self, metric: str, seconds: float, now: float) -> float | None:
        labels = {
            "namespace": self.namespace,
            "cluster": self.cluster,
            **self.settings.labels,
        }
        selected = ",".join(f'{name}="{value}"' for name, value in labels.items())
        query = f"sum(increase({metric}{{{selected}}}[{seconds:.0f}s]))"
        series = self.prometheus.instant(query, now)
        return next((value for each in series for value in each.points.values()), None)
