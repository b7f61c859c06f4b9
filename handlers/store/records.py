"""Single documents in the ledger's table, each written only over the version it was read at."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from handlers.store.table import VersionedTable

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
        if item is None:
            return Record(None, 0)
        packed = item["packed"]["B"]
        return Record(json.loads(zlib.decompress(packed)), int(item["version"]["N"]))

    def write(self, key: str, document: Any, version: int) -> None:
        packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode())
        item = {
            "pk": {"S": key},
            "version": {"N": str(version + 1)},
            "packed": {"B": packed},
        }
        self._table.write(item, version, f"{key} was changed by another invocation.")
