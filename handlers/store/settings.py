"""Reads what a function is told: its environment, and an item of the ledger's table for the rest.

Lambda takes 4 KB of variables, and the cluster's certificate alone is 1.5 KB; the volumes' policies
grow with every pool. The item's key is the hash of its content and stands in the environment, so a
change is another item and new containers, and no function ever reads another version's, or what
somebody else has written there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config

from core.ground.errors import InvalidInput
from core.settings import codec
from core.settings.codec import CONTENT, KEPT, REMEDY, SETTINGS, is_kept_under, read_settings_text
from handlers.store.table import VersionedTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

T = TypeVar("T")
# A function that starts while the table is silent says so in seconds, not in botocore's minutes.
PATIENCE = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})


def read_settings(
    cls: type[T],
    environment: Mapping[str, str] = os.environ,
    *,
    client: DynamoDBClient | None = None,
) -> T:
    """Return a function's settings; the table is asked at most once.

    Raises InvalidInput with one sentence per problem; botocore's errors where the table does not
    answer within seconds.
    """
    here = read_settings_text(environment)
    # One item is for several functions, of which each reads what it knows.
    known = {each.name for each in fields(cls)}  # type: ignore[arg-type]
    found = _kept_settings(environment, here, client)
    # What somebody sets by hand on the function holds.
    whole = {**{name: value for name, value in found.items() if name in known}, **here}
    try:
        return codec.read(cls, whole)
    except InvalidInput as error:
        problems = [f"{SETTINGS} is wrong: {problem}; {REMEDY}" for problem in error.problems]
        raise InvalidInput(problems) from None


def _kept_settings(
    environment: Mapping[str, str], here: Mapping[str, Any], client: DynamoDBClient | None
) -> dict[str, Any]:
    key = environment.get(KEPT)
    if not key:
        return {}
    region, table = str(here.get("region")), str(here.get("ledger_table"))
    asked = client or boto3.client("dynamodb", region_name=region, config=PATIENCE)
    item = VersionedTable(table, region, client=asked).item(key)
    if item is None:
        problem = (
            f"The table {table} has no item {key}, which the environment names; the operations "
            f"stack writes both, so run `pulumi up` on it again."
        )
        raise InvalidInput([problem])
    content = item[CONTENT]["S"]
    if not is_kept_under(key, content):
        problem = (
            f"The item {key} of the table {table} holds other settings than were written: somebody "
            f"has changed it. Find out who may write the table, then run `pulumi up` on the "
            f"operations stack again."
        )
        raise InvalidInput([problem])
    found: dict[str, Any] = json.loads(content)
    return found
