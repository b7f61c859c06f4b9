"""Everybody who knows something of volumes, asked once: EC2, Prometheus, brokers, CloudWatch.

Prometheus first, where there is one: it knows controllers' volumes, too, and costs nothing a
question. Of whatever it does not know the brokers and CloudWatch are asked, of that alone. What
then is still not known is a verdict of its own (core.volumes.unknown).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from core.errors import StillwaterError
from core.naming import node_id_of_pod
from core.volumes import series
from core.volumes.ledger import Modification
from core.volumes.views import Load
from handlers.adapters.claims import ClaimView
from handlers.adapters.ebs import Ebs, EbsView
from handlers.adapters.fill import Fills, FillView
from handlers.adapters.load import Loads
from handlers.adapters.volume_series import SeriesResult, VolumeSeries

logger = Logger(service="stillwater", child=True)


@dataclass(frozen=True, slots=True)
class Readings:
    """What the sources said, by volume id where nothing else is said; `gaps` is what none did."""

    ebs: Mapping[str, EbsView]
    latest: Mapping[str, Modification]
    types: Mapping[str, str]
    # By claim.
    fills: Mapping[str, FillView]
    loads: Mapping[str, Load]
    past: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sources:
    """Asks every source once; one that does not answer leaves what it says unknown."""

    ebs: Ebs
    fills: Fills
    loads: Loads
    series: VolumeSeries | None = None

    def read(self, claims: Sequence[ClaimView], unseen: Sequence[str], now: float) -> Readings:
        """Return what is known now, and of `unseen` claims what Prometheus saw before.

        Raises botocore's errors where EC2 does not answer: without it there is nothing to decide.
        """
        ids = [claim.volume_id for claim in claims]
        ebs = self.ebs.volumes(ids)
        instances = {i: v.instance_id for i, v in ebs.items()}
        gaps: list[str] = []
        seen = self._prometheus_figures([c.name for c in claims], sorted(ebs), unseen, now)
        fills = self._fills(claims, seen.fills, gaps)
        loads = self._loads(instances, seen.loads, gaps, now)
        return Readings(
            ebs=ebs,
            latest=self.ebs.modifications(ids),
            types=self.ebs.instance_types(sorted({i for i in instances.values() if i})),
            fills=fills,
            loads=loads,
            past=seen.past,
            gaps=(*seen.gaps, *gaps),
        )

    def _prometheus_figures(
        self, claims: Sequence[str], volumes: Sequence[str], unseen: Sequence[str], now: float
    ) -> _Seen:
        """Return what Prometheus says; one that fails once is not asked again this time."""
        if self.series is None or not claims:
            return _Seen()
        fills: SeriesResult[FillView] = SeriesResult()
        try:
            fills = self.series.fills(claims, now)
            loads = self.series.loads(volumes, now)
            past = self.series.past(unseen, now) if unseen else {}
        except StillwaterError as error:
            logger.warning("Prometheus did not say all of the volumes.", error=str(error))
            return _Seen(fills.found, gaps=(*fills.gaps, f"Prometheus did not answer: {error}"))
        return _Seen(fills.found, loads.found, past, (*fills.gaps, *loads.gaps))

    def _fills(
        self, claims: Sequence[ClaimView], seen: Mapping[str, FillView], gaps: list[str]
    ) -> Mapping[str, FillView]:
        missing = [claim for claim in claims if claim.name not in seen]
        if not missing:
            return seen
        try:
            told = self.fills.fills()
        except StillwaterError as error:
            logger.warning("No broker said how full its volumes are.", error=str(error))
            gaps.append(f"No broker said how full its volumes are: {error}")
            told = {}
        found = {**seen}
        for claim in missing:
            node_id = node_id_of_pod(claim.pod)
            if node_id is not None and (node_id, claim.number) in told:
                found[claim.name] = told[node_id, claim.number]
        return found

    def _loads(
        self,
        instances: Mapping[str, str | None],
        seen: Mapping[str, Load],
        gaps: list[str],
        now: float,
    ) -> Mapping[str, Load]:
        missing = {
            volume: instance
            for volume, instance in instances.items()
            if not series.is_whole(seen.get(volume, Load()))
        }
        if not missing:
            return seen
        try:
            told = self.loads.loads(missing, now)
        except (StillwaterError, BotoCoreError, ClientError) as error:
            logger.warning("CloudWatch did not say what is asked of the volumes.", error=str(error))
            gaps.append(f"CloudWatch did not say what is asked of {len(missing)} volumes: {error}")
            return seen
        joined = {v: series.merged_load(seen.get(v, Load()), told.get(v, Load())) for v in missing}
        return {**seen, **joined}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What Prometheus said."""

    fills: Mapping[str, FillView] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)
    past: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
