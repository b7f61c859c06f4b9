"""Keeps what is too long for a function's environment, as an item of the ledger's table.

handlers.store.settings reads it. The key is the content's hash: a change makes another item before
any function is told of it, and takes the old one away after.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from core.settings import codec
from core.settings.environment import CONTENT, kept_key
from core.settings.functions import FunctionSettings, kept_fields
from infra.functions.ledger import KEY


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The key that a function is told, and the item, which must be there first."""

    key: pulumi.Output[str]
    item: pulumi.Resource


def keep(
    name: str,
    role: str,
    table_name: pulumi.Input[str],
    settings: pulumi.Output[FunctionSettings],
    parent: pulumi.Resource,
) -> Kept:
    """Write the fields of settings that are marked for it into the ledger's table."""
    known = settings.apply(lambda found: _content(role, found))
    item = aws.dynamodb.TableItem(
        name,
        table_name=table_name,
        hash_key=KEY,
        item=known.apply(lambda made: made[1]),
        opts=pulumi.ResourceOptions(parent=parent, replace_on_changes=["item"]),
    )
    return Kept(key=known.apply(lambda made: made[0]), item=item)


def short(settings: FunctionSettings) -> str:
    """Return what of settings stands in the environment."""
    long, told = kept_fields(type(settings)), codec.document(settings)
    return codec.write({name: value for name, value in told.items() if name not in long})


def _content(role: str, settings: FunctionSettings) -> tuple[str, str]:
    told: dict[str, Any] = codec.document(settings)
    content = codec.write({name: told[name] for name in kept_fields(type(settings))})
    key = kept_key(role, content)
    return key, json.dumps({KEY: {"S": key}, CONTENT: {"S": content}}, sort_keys=True)
