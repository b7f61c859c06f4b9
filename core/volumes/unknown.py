"""Names what nobody measured of a set of volumes: a verdict of its own, with the missing source.

It is never taken for a zero: a volume of unknown fill is not empty, one of unknown load not idle.
Whom it calls is another question. A cluster that is being made has brokers that do not answer yet
and metrics that have not begun; and where no Prometheus is asked, nobody can know of controllers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.volumes.ledger import ModificationState
from core.volumes.series import NAMED, is_whole
from core.volumes.views import VolumeSet, VolumeView
from core.words import listing

UNKNOWN = "unknown"
# Since a volume was first looked at: machines, volumes, brokers and their first hour of metrics.
MAKING_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A figure nobody has, as a sentence, and whether somebody should be called for it."""

    sentence: str
    alarming: bool


def unknowns(of: VolumeSet, now: float) -> tuple[Unmeasured, ...]:
    """Return what is not known of a set: how full its volumes are, what is asked of them."""
    return (*_fill(of, now), *_load(of, now), *_modifications(of))


def _modifications(of: VolumeSet) -> Iterator[Unmeasured]:
    for volume in of.volumes:
        running = volume.history.under_way
        if running is not None and running.state is ModificationState.UNKNOWN:
            why = "AWS has a word for it that this release does not know"
            what = f"how far the modification of {volume.claim} is ({running.word})"
            yield Unmeasured(_unknown_sentence(what, "changed", why), alarming=True)


def _fill(of: VolumeSet, now: float) -> Iterator[Unmeasured]:
    missing = [volume for volume in of.volumes if volume.forecast is None]
    if not missing:
        return
    names = listing([volume.claim for volume in missing], NAMED)
    if of.policy.grow_only and not of.prometheus:
        why = (
            "only a kubelet knows it of a controller's; set metrics.prometheus in the ClusterSpec "
            "to a Prometheus that scrapes the kubelets"
        )
        yield Unmeasured(_unknown_sentence(f"the fill of {names}", "grown", why), alarming=False)
        return
    sources = [] if of.policy.grow_only else ["no broker told (DescribeLogDirs)"]
    if of.prometheus:
        sources.append("Prometheus has no kubelet_volume_stats of it")
    yield Unmeasured(
        _unknown_sentence(f"the fill of {names}", "grown", " and ".join(sources)),
        alarming=_has_settled(missing, now),
    )


def _load(of: VolumeSet, now: float) -> Iterator[Unmeasured]:
    # A metadata log keeps no volume busy, and nothing is asked of one that is attached nowhere.
    missing = [
        volume
        for volume in of.volumes
        if not of.policy.grow_only and volume.instance_type and not is_whole(volume.load)
    ]
    if not missing:
        return
    sources = ["CloudWatch has not all of its AWS/EBS and its instance's AWS/EC2 metrics"]
    if of.prometheus:
        sources.append("Prometheus has not all of its aws_ebs_csi metrics")
    names = listing([volume.claim for volume in missing], NAMED)
    yield Unmeasured(
        _unknown_sentence(f"the load of {names}", "raised or lowered by it", " and ".join(sources)),
        alarming=_has_settled(missing, now),
    )


def _unknown_sentence(what: str, undone: str, why: str) -> str:
    return f"{what} is not known, so nothing is {undone}: {why}"


def _has_settled(missing: Sequence[VolumeView], now: float) -> bool:
    """Say whether one of these has been there for longer than it takes to make a cluster."""
    since = [volume.history.known_since for volume in missing]
    return any(at is not None and at <= now - MAKING_SECONDS for at in since)
