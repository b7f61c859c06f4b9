"""Reads keys of KMS's into core.survey's facts, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from cli.aws_pages import pages
from core.survey.account_facts import Disk, EncryptionKey
from core.survey.node_facts import MachineTemplate

GONE, DENIED = "NotFoundException", "AccessDeniedException"
ENABLED, CUSTOMER = "Enabled", "CUSTOMER"


def encryption_keys(
    kms: Any, disks: Iterable[Disk], templates: Iterable[MachineTemplate], account: str | None
) -> dict[str, EncryptionKey]:
    """Return keys by what disks and templates call them; another account's may not be told."""
    started = {key for template in templates for key in template.keys}
    wanted = started | {disk.key for disk in disks if disk.key}
    found = {name: _key(kms, name, account, started=name in started) for name in sorted(wanted)}
    return {name: key for name, key in found.items() if key is not None}


def _key(kms: Any, name: str, account: str | None, *, started: bool) -> EncryptionKey | None:
    try:
        said = kms.describe_key(KeyId=name)["KeyMetadata"]
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == GONE:
            return EncryptionKey(state="gone")
        # That it is another account's is said of the disks.
        if code == DENIED and account and name.split(":")[4:5] not in ([account], []):
            return None
        raise
    own = said.get("KeyManager") == CUSTOMER and said.get("AWSAccountId") in (account, None)
    day = said.get("DeletionDate")
    state = str(said.get("KeyState") or ENABLED)
    return EncryptionKey(
        state=state,
        deleted_on=f"{day:%F}" if isinstance(day, datetime) else None,
        users=users(kms, name, pages(kms, "list_grants", "Grants", KeyId=name))
        if started and own and state == ENABLED
        else None,
    )


def users(kms: Any, name: str, grants: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return whom a key's grants and its policy name: a role, or a whole account."""
    found = {str(grant.get("GranteePrincipal")) for grant in grants}
    policy = json.loads(kms.get_key_policy(KeyId=name, PolicyName="default")["Policy"])
    statements = policy.get("Statement") or ()
    for each in [statements] if isinstance(statements, Mapping) else statements:
        if each.get("Effect") == "Allow":
            found |= _principals(each.get("Principal"))
    return frozenset(found)


def _principals(principal: Any) -> set[str]:
    if not isinstance(principal, Mapping):
        return {str(principal)}
    named = principal.get("AWS", ())
    listed: Collection[str] = (named,) if isinstance(named, str) else named
    return set(listed)
