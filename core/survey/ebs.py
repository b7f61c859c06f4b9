"""Judges Kafka's disks as EBS itself describes them, whatever their class and claim say.

Source: EBS's volumes: states, Multi-Attach, encryption under another account's key, modifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.survey.account_facts import Disk
from core.survey.facts import Surveyed, node_of
from core.survey.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    producer_may_stall,
    worth_knowing,
)
from core.unknown import Unknown, mapping_of, of

EBS_IDS = "vol-"
IMPAIRED = "impaired"
# States of an attachment that ends.
NOT_OFF = ("detaching", "busy")


def disks(seen: Surveyed) -> Iterator[Finding]:
    """Find disks that are gone, broken, open to two machines, or under somebody else's key."""
    if isinstance(seen.disks, Unknown):
        return
    held = {
        volume.handle: volume.title
        for volume in of(seen.volumes)
        if volume.handle and volume.handle.startswith(EBS_IDS)
    }
    if gone := [claim for handle, claim in held.items() if handle not in seen.disks]:
        yield broker_may_die(
            "volume-gone",
            "volumes of Kafka",
            f"EBS knows no volume of {listing(gone)}: they were deleted, or are of another account "
            f"or region, and a broker that restarts finds no data",
            "look for their ids in EBS, and restore them from a snapshot before their pods restart",
        )
    known = {claim: seen.disks[handle] for handle, claim in held.items() if handle in seen.disks}
    if broken := [claim for claim, disk in known.items() if disk.state == "error"]:
        yield broker_may_die(
            "volume-error",
            "volumes of Kafka",
            f"EBS says that {listing(broken)} failed (state error): its data is not to be had",
            "let no other broker leave, and restore it from a snapshot or from its replicas",
        )
    if open_ones := [claim for claim, disk in known.items() if disk.multi_attach]:
        yield broker_may_die(
            "volume-multi-attach",
            "volumes of Kafka",
            f"{listing(open_ones)} may be attached to several machines (Multi-Attach): a broker on "
            f"a node that is cut off may write on beside its successor",
            "disable Multi-Attach of the volume, as each of Kafka's has one writer",
        )
    yield from _attachments(seen.disks, seen)
    yield from _keys(known, seen)
    yield from _changing(known)
    yield from _checked(held, seen)
    counted = mapping_of(seen.disk_snapshots)
    if copied := [claim for handle, claim in held.items() if counted.get(handle, 0) > 1]:
        yield worth_knowing(
            "volume-snapshots",
            "volumes of Kafka",
            f"several snapshots of {listing(copied)} are being made at once: EBS says that they "
            f"may be slower until these are whole",
            "let them end before a broker copies its replicas back",
        )


def _attachments(disks: Mapping[str, Disk], seen: Surveyed) -> Iterator[Finding]:
    """Find disks that hang on a machine that is not their pod's, or do not come off."""
    handles = {(v.namespace, v.claim): v.handle or "" for v in of(seen.volumes)}
    hanging = []
    for pod in of(seen.pods):
        node = node_of(pod, seen)
        mine = (handles.get((pod.namespace, claim), "") for claim in pod.claims)
        for disk in (disks[handle] for handle in mine if handle in disks):
            hanging += [
                f"{pod.name} ({state} on {machine})"
                for machine, state in disk.attached.items()
                if node is not None
                and node.instance_id
                and (machine != node.instance_id or state in NOT_OFF)
            ]
    if hanging:
        yield producer_may_stall(
            "volume-attached",
            "volumes of Kafka",
            f"the disk of {listing(hanging)} is not with its pod, or does not come off: EBS "
            f"attaches it nowhere else before that machine lets it go",
            "see to that machine: its file system may still be in use, or it hangs; stop it before "
            "a volume is taken by force",
        )


def _keys(known: Mapping[str, Disk], seen: Surveyed) -> Iterator[Finding]:
    plane = seen.control_plane
    here = None if isinstance(plane, Unknown) else _account(plane.arn)
    foreign = {
        claim: account
        for claim, disk in known.items()
        if (account := _account(disk.key)) and here and account != here
    }
    for account in sorted(set(foreign.values())):
        claims = listing(claim for claim, owner in foreign.items() if owner == account)
        yield worth_knowing(
            "volume-key",
            "volumes of Kafka",
            f"{claims} are encrypted under a key of account {account}: when that withdraws its "
            f"grant or its key, they can be attached to no other node",
            "know who looks after that key, or copy the volumes under a key of this account",
        )


def _account(arn: str | None) -> str | None:
    """Return the account that an ARN names."""
    return next(iter((arn or "").split(":")[4:5]), None)


def _checked(held: Mapping[str, str], seen: Surveyed) -> Iterator[Finding]:
    """Find disks that EBS's own checks call impaired, or slower than they were bought."""
    said_of = mapping_of(seen.disk_checks)
    found = {claim: said_of[handle] for handle, claim in held.items() if handle in said_of}
    for ill in (True, False):
        mine = {c: said for c, said in found.items() if said.startswith(IMPAIRED) is ill}
        if mine:
            yield Finding(
                "volume-impaired",
                Weight.PRODUCER if ill else Weight.ADVICE,
                "volumes of Kafka",
                f"EBS's checks say of {listing(f'{c}: {said}' for c, said in mine.items())}: "
                + (
                    "a broker waits on such a disk, or reads what is not right, and falls out of "
                    "sync"
                    if ill
                    else "it is slower than what was bought, and a broker on it may fall behind"
                ),
                "look at its events (`aws ec2 describe-volume-status`), and let no other broker "
                "leave until it is ok",
            )


def _changing(known: Mapping[str, Disk]) -> Iterator[Finding]:
    under_way = [f"{claim} ({disk.change})" for claim, disk in known.items() if disk.change]
    if under_way:
        yield worth_knowing(
            "volume-modified",
            "volumes of Kafka",
            f"EBS changes {listing(under_way)}: until that is over, or for hours after it failed, "
            f"they cannot grow, and they may be slower",
            "wait for its end before a node leaves, and ask for the next change after that",
        )
