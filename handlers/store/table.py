"""Reads and writes items and documents of the ledger's table, over the version they were read at.

A write that lost its race is tried again over what the other wrote. A function's settings that are
too long for Lambda's 4 KB of variables are an item, too. Its key is the hash of its content and
stands in the environment: a change is another item and new containers, so no function reads another
version's.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from core.ground.constants import LEDGER_ERRORS
from core.ground.errors import Conflict, InvalidInput
from core.settings import codec
from core.settings.codec import CONTENT, KEPT, REMEDY, SETTINGS, is_kept_under, read_settings_text
from handlers.adapters import metrics
from handlers.adapters.calls import NO_ANSWER, known_shape, of_aws

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


Item = dict[str, Any]


class VersionedTable:
    """One table with the partition key `pk` and a `version` in every item."""

    def __init__(self, name: str, region: str, *, client: DynamoDBClient | None = None) -> None:
        self._name = name
        self._client = client or boto3.client("dynamodb", region_name=region)

    def item(self, key: str) -> Item | None:
        """Return an item as last written."""
        (answer,) = self._ask(
            lambda: [
                self._client.get_item(
                    TableName=self._name, Key={"pk": {"S": key}}, ConsistentRead=True
                )
            ]
        )
        found: Item | None = answer.get("Item")
        return found

    def write(self, item: Item, read_version: int, conflict: str) -> None:
        """Write an item over the version it was read at; 0 is an item that must not exist.

        Raises Conflict with the sentence given when somebody has written since.
        """
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if read_version:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": {"N": str(read_version)}},
            }
        try:
            self._ask(lambda: [self._client.put_item(TableName=self._name, Item=item, **condition)])
        except ClientError as error:
            if _lost_race(error):
                raise Conflict(conflict) from None
            raise

    def items_of_index(self, index: str, value: str, limit: int | None = None) -> Iterator[Item]:
        """Yield the items of a sparse index whose key is the attribute of its name."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._name,
            IndexName=index,
            KeyConditionExpression="#key = :value",
            ExpressionAttributeNames={"#key": index},
            ExpressionAttributeValues={":value": {"S": value}},
            PaginationConfig={} if limit is None else {"MaxItems": limit},
        )
        for page in self._ask(lambda: pages):
            yield from page["Items"]

    @staticmethod
    def _ask(call: Callable[[], Iterable[Any]]) -> list[Any]:
        try:
            return [of_aws(answer) for answer in call()]
        except NO_ANSWER as error:
            if not (isinstance(error, ClientError) and _lost_race(error)):
                metrics.count(LEDGER_ERRORS)
            raise


def _lost_race(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "ConditionalCheckFailedException"


@dataclass(frozen=True, slots=True)
class Record:
    """A document and the version it was read at; version 0 is one never written."""

    document: Any
    version: int


class Records:
    """Documents as items of the ledger's table, compressed: an item holds 400 KB."""

    def __init__(self, table: str, region: str, *, client: DynamoDBClient | None = None) -> None:
        self._table = VersionedTable(table, region, client=client)

    def read(self, key: str) -> Record:
        """Return a document as last written; of one never written, None at version 0."""
        item = self._table.item(key)
        return Record(None, 0) if item is None else _unpacked(item)

    def write(self, key: str, document: Any, version: int) -> None:
        """Write a document over a version; raises Conflict when somebody has written since."""
        packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode())
        item = {"pk": {"S": key}, "version": {"N": str(version + 1)}, "packed": {"B": packed}}
        self._table.write(item, version, f"{key} was changed by another invocation.")


@known_shape("The ledger's table")
def _unpacked(item: Item) -> Record:
    try:
        document = json.loads(zlib.decompress(item["packed"]["B"]))
    except zlib.error as error:
        raise ValueError(error) from None
    return Record(document, int(item["version"]["N"]))


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
            f"The item {key} of the table {table} holds other settings than were written: it was "
            "changed. Find out who may write the table, then run `pulumi up` on the operations "
            "stack again."
        )
        raise InvalidInput([problem])
    found: dict[str, Any] = json.loads(content)
    return found


# Writers meet at a document by chance; more than a few times in a row is a fault.
MOST_ATTEMPTS = 5


def retry_on_newer(change: Callable[[], T]) -> T:
    """Return what a change does that reads before it writes; raises Conflict if others keep on."""
    for _ in range(MOST_ATTEMPTS - 1):
        try:
            return change()
        except Conflict:
            continue
    return change()
