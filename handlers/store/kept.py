"""Reads what is too long for a function's environment: an item of the ledger's table, by its hash.

Lambda takes 4 KB of variables, and the cluster's certificate alone is 1.5 KB; the volumes' policies
grow with every pool. The item's key is the hash of its content and stands in the environment, so a
change is another item and new containers, and no function ever reads another version's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from core.errors import InvalidInput
from handlers.store.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

VARIABLE = "STILLWATER_KEPT"
CONTENT = "variables"
# A function that starts while the table is silent says so in seconds, not in botocore's minutes.
PATIENCE = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})


def complete(
    environment: Mapping[str, str] = os.environ, *, client: DynamoDBClient | None = None
) -> Mapping[str, str]:
    """Return the environment with the variables that are kept in the table; asked once, at start.

    Raises InvalidInput where the item is gone: the environment is an older program's; botocore's
    errors where the table does not answer within seconds.
    """
    key = environment.get(VARIABLE)
    if not key:
        return environment
    region = environment.get("STILLWATER_REGION") or environment.get("AWS_REGION") or ""
    table = environment.get("STILLWATER_LEDGER_TABLE") or ""
    asked = client or boto3.client("dynamodb", region_name=region, config=PATIENCE)
    item = Table(table, region, client=asked).item(key)
    if item is None:
        problem = (
            f"The table {table} has no item {key}, which the environment names; the operations "
            f"stack writes both, so run `pulumi up` on it again."
        )
        raise InvalidInput([problem])
    kept = {name: str(value["S"]) for name, value in item[CONTENT]["M"].items()}
    # What somebody sets by hand on the function holds.
    return {**kept, **environment}
