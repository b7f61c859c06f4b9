"""Finds what stands in a volume's way: somebody's change, a stuck resize, a missing class.

Each is a sentence with its remedy. The single writer of a volume is its KafkaNodePool; whatever was
changed elsewhere neither Strimzi nor the EBS driver puts right by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.volumes.ledger import ModificationState
from core.volumes.limits import Performance
from core.volumes.views import Trouble, VolumeSet, VolumeView

NOT_APPLIED = "not-applied"
IGNORED = "storage-ignored"
CLASS_DRIFT = "class-drift"
# Strimzi reconciles every two minutes, and the driver waits two seconds for more to change.
SETTLING_SECONDS = 600.0


def troubles(of: VolumeSet, now: float) -> tuple[Trouble, ...]:
    """Return everything that is wrong with the volumes of a set."""
    found = (trouble for volume in of.volumes for trouble in _of_volume(of, volume, now))
    return (*_ignored_storage(of), *found)


def _ignored_storage(of: VolumeSet) -> Iterator[Trouble]:
    """Say that no change of the pool is obeyed, and what its storage must be for one to be."""
    if of.ignored:
        yield Trouble(
            IGNORED,
            f"Strimzi's operator ignores every change of the storage of pool {of.pool}, growth "
            f"included, and says: {of.ignored.rstrip('.')}",
            f"correct another volume of KafkaNodePool {of.pool} first: it asks for less there than "
            f"its claims have",
        )


def _of_volume(of: VolumeSet, volume: VolumeView, now: float) -> Iterator[Trouble]:
    yield from volume.troubles
    latest = volume.history.latest
    if latest is not None and (
        latest.state in {ModificationState.MODIFYING, ModificationState.OPTIMIZING}
        or now - latest.started_at < SETTLING_SECONDS
    ):
        return
    yield from _unapplied_changes(of, volume)
    yield from _drifts(volume)


def _unapplied_changes(of: VolumeSet, volume: VolumeView) -> Iterator[Trouble]:
    claim, wanted = volume.claim, class_of(of.asked.performance)
    if (volume.requested_gib, volume.wanted_class) != (of.asked.size_gib, wanted):
        yield Trouble(
            NOT_APPLIED,
            f"claim {claim} asks for {volume.requested_gib} GiB of class "
            f"{volume.wanted_class or '(none)'}, and its pool for {of.asked.size_gib} GiB of "
            f"{wanted}",
            "see why Strimzi's operator has not written it: its log and the KafkaNodePool's status",
        )
    elif volume.given_gib < volume.requested_gib:
        yield Trouble(
            "resize-stuck",
            f"claim {claim} asks for {volume.requested_gib} GiB and has {volume.given_gib}",
            f"see `kubectl describe pvc {claim}` and the EBS driver's log",
        )
    elif volume.given_class != volume.wanted_class:
        yield Trouble(
            "class-stuck",
            f"claim {claim} asks for class {volume.wanted_class} and has "
            f"{volume.given_class or '(none)'}",
            f"see `kubectl describe pvc {claim}` and the EBS driver's log",
        )


def _drifts(volume: VolumeView) -> Iterator[Trouble]:
    actual = volume.actual
    given = performance_of(volume.given_class)
    if given is not None and given != actual.performance:
        yield Trouble(
            CLASS_DRIFT,
            f"{volume.volume_id} has {actual.performance} "
            f"and its class {volume.given_class} another performance: somebody changed it in EC2, "
            f"and the driver never repairs that",
            f"modify {volume.volume_id} back to {given}, which takes one of its four modifications",
            blocks=False,
        )


def performance_of(class_name: str) -> Performance | None:
    """Return what a VolumeAttributesClass of ours gives, by its name; None for another's.

    >>> performance_of("gp3-4000-250")
    Performance(iops=4000, throughput_mib_per_s=250)
    """
    kind, _, rest = class_name.partition("-")
    iops, _, throughput = rest.partition("-")
    if kind != "gp3" or not (iops.isdigit() and throughput.isdigit()):
        return None
    return Performance(int(iops), int(throughput))


def class_of(performance: Performance) -> str:
    """Return the VolumeAttributesClass of a performance.

    >>> class_of(Performance(4000, 250))
    'gp3-4000-250'
    """
    return f"gp3-{performance.iops}-{performance.throughput_mib_per_s}"
