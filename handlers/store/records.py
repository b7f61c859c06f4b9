"""Single documents in the ledger's table, each written only over the version it was read at."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from handlers.adapters.calls import known_shape
from handlers.store.table import Item, VersionedTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Record:
    """A document and the version it was read at; version 0 is one never written."""

    document: Any
    version: int


class Records(Protocol):
    """Documents by key; see tests for the in-memory twin."""

    def read(self, key: str) -> Record:
        """Return a document as last written; of one never written, None at version 0."""

    def write(self, key: str, document: Any, version: int) -> None:
        """Write a document over a version; raises Conflict when somebody has written since."""


class DynamoRecords:
    """Documents as items of the ledger's table, compressed: an item holds 400 KB."""

    def __init__(self, table: str, region: str, *, client: DynamoDBClient | None = None) -> None:
        self._table = VersionedTable(table, region, client=client)

    def read(self, key: str) -> Record:
        item = self._table.item(key)
        return Record(None, 0) if item is None else _unpacked(item)

    def write(self, key: str, document: Any, version: int) -> None:
        packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode())
        item = {
            "pk": {"S": key},
            "version": {"N": str(version + 1)},
            "packed": {"B": packed},
        }
        self._table.write(item, version, f"{key} was changed by another invocation.")


@known_shape("The ledger's table")
def _unpacked(item: Item) -> Record:
    try:
        document = json.loads(zlib.decompress(item["packed"]["B"]))
    except zlib.error as error:
        raise ValueError(error) from None
    return Record(document, int(item["version"]["N"]))
