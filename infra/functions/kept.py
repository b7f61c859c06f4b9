"""What is too long for a function's environment, as an item of the ledger's table.

handlers.store.kept reads it. The key is the content's hash: a change makes another item before any
function is told of it, and takes the old one away after.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.functions.ledger import KEY, Ledger

# In the ledger's table, beside incidents and volumes.
KEYS = "settings#*"
VARIABLE = "STILLWATER_KEPT"
CONTENT = "variables"
HASH_CHARACTERS = 16


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The variable that names an item, and the item, which must be there first."""

    environment: Mapping[str, pulumi.Input[str]]
    item: pulumi.Resource


def keep(
    name: str,
    ledger: Ledger,
    role: str,
    variables: Mapping[str, pulumi.Input[str]],
    parent: pulumi.Resource,
) -> Kept:
    """Write variables into the ledger's table; return what a function is told instead of them."""
    known = pulumi.Output.all(**variables).apply(lambda given: _content(role, given))
    item = aws.dynamodb.TableItem(
        name,
        table_name=ledger.table_name,
        hash_key=KEY,
        item=known.apply(lambda made: made[1]),
        opts=pulumi.ResourceOptions(parent=parent, replace_on_changes=["item"]),
    )
    return Kept(environment={VARIABLE: known.apply(lambda made: made[0])}, item=item)


def _content(role: str, given: Mapping[str, str]) -> tuple[str, str]:
    content = {name: {"S": value} for name, value in sorted(given.items())}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:HASH_CHARACTERS]
    key = f"settings#{role}-{digest}"
    return key, json.dumps({KEY: {"S": key}, CONTENT: {"M": content}}, sort_keys=True)
