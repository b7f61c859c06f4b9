"""Judges the keys under which Kafka's disks, and root volumes of its machines, are encrypted.

Sources: AWS KMS's key states; EC2 Auto Scaling's key policy for encrypted volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.survey.account_facts import EncryptionKey
from core.survey.facts import Surveyed
from core.survey.finding import Finding, broker_may_die, listing, producer_may_stall
from core.survey.node_facts import ScalingGroup
from core.unknown import mapping_of, of

# In which a key decrypts, or is about to.
USABLE, DELETED = (
    ("Enabled", "Creating", "Updating"),
    ("PendingDeletion", "PendingReplicaDeletion", "gone"),
)
# Who starts the machines of a group that names no role of its own.
SERVICE_ROLE = "AWSServiceRoleForAutoScaling"


def keys(seen: Surveyed) -> Iterator[Finding]:
    """Find disks that no machine can open again, and groups whose machines do not start."""
    known = mapping_of(seen.encryption_keys)
    yield from _of_disks(seen, known)
    for group in mapping_of(seen.groups).values():
        yield from _of_group(group, seen, known)


def _of_disks(seen: Surveyed, known: Mapping[str, EncryptionKey]) -> Iterator[Finding]:
    disks = mapping_of(seen.disks)
    held: dict[str, list[str]] = {}
    for volume in of(seen.volumes):
        disk = disks.get(volume.handle or "")
        key = None if disk is None else disk.key
        if key and known.get(key, EncryptionKey()).state not in USABLE:
            held.setdefault(key, []).append(volume.title)
    for name, claims in sorted(held.items()):
        found = known[name]
        lost = found.state in DELETED
        when = f" on {found.deleted_on}" if found.deleted_on else ""
        yield broker_may_die(
            "key-state",
            "volumes of Kafka",
            f"{listing(claims)} are encrypted under {_short(name)}, which is "
            + (f"deleted{when}" if lost else f"{found.state}")
            + ": they are readable while their machines hold them, and are attached to no other"
            + (", and after that day nobody reads them again" if lost else ""),
            "cancel the deletion (`aws kms cancel-key-deletion`) and enable the key, before any "
            "node leaves"
            if lost
            else "enable the key again before any node leaves",
        )


def _of_group(
    group: ScalingGroup, seen: Surveyed, known: Mapping[str, EncryptionKey]
) -> Iterator[Finding]:
    templates = mapping_of(seen.templates).get(group.name, ())
    named = {key for template in templates for key in template.keys}
    for name in sorted(named & set(known)):
        key = known[name]
        if key.state not in USABLE:
            yield producer_may_stall(
                "template-key",
                group.title,
                f"disks of machines that it starts are encrypted under {_short(name)}, which is "
                f"{key.state}: no replacement starts",
                "enable that key, or name another in its template, before any node leaves",
            )
        elif key.users is not None and not _is_named(group, key.users):
            yield producer_may_stall(
                "key-grant",
                group.title,
                f"disks of machines that it starts are encrypted under {_short(name)}, and "
                f"neither the key's policy nor a grant names {_role(group)}: its machines end at "
                f"once (Client.InternalError)",
                "allow that role to use the key, and to make grants for AWS resources",
            )


def _role(group: ScalingGroup) -> str:
    return (group.service_role or SERVICE_ROLE).rpartition("/")[2]


def _is_named(group: ScalingGroup, users: frozenset[str]) -> bool:
    return "*" in users or any(each.rpartition("/")[2] == _role(group) for each in users)


def _short(key: str) -> str:
    """Return a key's name without its account: key/0a1b."""
    return key.rpartition(":")[2]
