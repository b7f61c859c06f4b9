"""The ledger's DynamoDB table as items: read one, write one over the version it was read at.

handlers.store.ledger keeps incidents in it, handlers.store.threads what Slack was told of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from core.ground.errors import Conflict
from core.ground.metric_names import LEDGER_ERRORS
from handlers.adapters import metrics

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
        answer = self._ask(
            lambda: self._client.get_item(
                TableName=self._name, Key={"pk": {"S": key}}, ConsistentRead=True
            )
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
            self._ask(lambda: self._client.put_item(TableName=self._name, Item=item, **condition))
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
        for page in self._ask(lambda: list(pages)):
            yield from page["Items"]

    @staticmethod
    def _ask(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            if not (isinstance(error, ClientError) and _lost_race(error)):
                metrics.count(LEDGER_ERRORS)
            raise


def _lost_race(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "ConditionalCheckFailedException"
