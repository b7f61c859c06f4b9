"""The ledger: incidents, the lease and what was announced, in one DynamoDB table.

Keys (`pk`): `incident#<id>`, `lease#<cluster>`, `event#<dedupe key>`, `ignored#<digest>`. Every
write that could lose another's is conditional on the version it read. An incident carries the
attribute `open` while it is open, and the sparse index of that name lists those.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import boto3
from botocore.exceptions import ClientError

from core.errors import Conflict
from core.fields import digest
from core.incident_record import Incident, from_json, incident_id, to_json
from core.rotation import Lease, LeaseDecision, grant

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

OPEN_INDEX = "open"
# What is over stays readable for reports; only its copies are deleted by DynamoDB.
ANNOUNCEMENT_DAYS = 90
# A partition key holds 2048 bytes; an announcement may name itself at any length.
LONGEST_KEY = 512


class Ledger(Protocol):
    """What the handlers remember; see tests for its in-memory twin."""

    def get(self, id_: str) -> Incident | None:
        """Return an incident as last written."""

    def put(self, incident: Incident) -> Incident:
        """Write an incident over the version it was read at; return it with its new version.

        Raises Conflict when somebody has written since. Version 0 is one never written.
        """

    def open_incidents(self) -> tuple[Incident, ...]:
        """Return every open incident; one written moments ago may be missing."""

    def record_event(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        """Keep an announcement; the first record of one stands."""

    def record_ignored(self, body: str, reason: str, now: float) -> None:
        """Keep a message that asked for nothing, with its body; the first record stands."""

    def lease(self) -> Lease | None:
        """Return the cluster's lease, which may have expired."""

    def take_lease(self, holder: str, now: float, ttl_seconds: float) -> LeaseDecision:
        """Take or renew the lease; a refusal says who holds it."""

    def drop_lease(self, holder: str) -> None:
        """Give the lease back if `holder` has it."""


def rounds(ledger: Ledger, instance_id: str) -> tuple[Incident, ...]:
    """Return an instance's incidents, the first round first; all but the last are over."""
    found: list[Incident] = []
    while (incident := ledger.get(incident_id(instance_id, len(found) + 1))) is not None:
        found.append(incident)
    return tuple(found)


class DynamoLedger:
    """The ledger in DynamoDB."""

    def __init__(
        self, table: str, cluster: str, region: str, *, client: DynamoDBClient | None = None
    ) -> None:
        self._table = table
        self._lease_key = f"lease#{cluster}"
        self._client = client or boto3.client("dynamodb", region_name=region)

    def get(self, id_: str) -> Incident | None:
        item = self._item(f"incident#{id_}")
        return None if item is None else _incident(item)

    def put(self, incident: Incident) -> Incident:
        item: dict[str, Any] = {
            "pk": {"S": f"incident#{incident.id}"},
            "version": {"N": str(incident.version + 1)},
            "instance_id": {"S": incident.instance_id},
            "state": {"S": incident.state.value},
            "document": {"S": to_json(incident)},
        }
        if incident.open:
            item["open"] = {"S": "open"}
        self._write(
            item, incident.version, f"Incident {incident.id} was changed by another invocation."
        )
        return _incident(item)

    def open_incidents(self) -> tuple[Incident, ...]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=OPEN_INDEX,
            KeyConditionExpression="#open = :open",
            ExpressionAttributeNames={"#open": "open"},
            ExpressionAttributeValues={":open": {"S": "open"}},
        )
        return tuple(_incident(item) for page in pages for item in page["Items"])

    def record_event(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        key = dedupe_key if len(dedupe_key) <= LONGEST_KEY else digest(dedupe_key)
        self._record(f"event#{key}", body, outcome, now)

    def record_ignored(self, body: str, reason: str, now: float) -> None:
        # One message may be ignored for several instances, each for its own reason.
        self._record(f"ignored#{digest(reason + body)}", body, reason, now)

    def lease(self) -> Lease | None:
        return self._lease()[0]

    def take_lease(self, holder: str, now: float, ttl_seconds: float) -> LeaseDecision:
        lease, version = self._lease()
        decision = grant(lease, holder, now, ttl_seconds)
        if not decision.granted:
            return decision
        try:
            self._write_lease(decision.lease, version)
        except Conflict:
            return LeaseDecision(
                granted=False,
                lease=decision.lease,
                reason="Another incident asked for the lease at the same moment.",
            )
        return decision

    def drop_lease(self, holder: str) -> None:
        lease, version = self._lease()
        if lease is not None and lease.holder == holder:
            # Expired rather than deleted: a deleted item's version starts again at 1, and a
            # slow writer of that version would then pass for a current one.
            self._write_lease(Lease(holder, 0.0), version)

    def _lease(self) -> tuple[Lease | None, int]:
        item = self._item(self._lease_key)
        if item is None:
            return None, 0
        stored = json.loads(item["document"]["S"])
        return Lease(stored["holder"], stored["expires_at"]), int(item["version"]["N"])

    def _write_lease(self, lease: Lease, version: int) -> None:
        document = {"holder": lease.holder, "expires_at": lease.expires_at}
        item = {
            "pk": {"S": self._lease_key},
            "version": {"N": str(version + 1)},
            "document": {"S": json.dumps(document)},
        }
        self._write(item, version, "The lease changed hands meanwhile.")

    def _item(self, key: str) -> dict[str, Any] | None:
        answer = self._client.get_item(
            TableName=self._table, Key={"pk": {"S": key}}, ConsistentRead=True
        )
        return answer.get("Item")

    def _write(self, item: dict[str, Any], read_version: int, conflict: str) -> None:
        """Write an item over the version it was read at; 0 is an item that must not exist."""
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if read_version:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": {"N": str(read_version)}},
            }
        try:
            self._client.put_item(TableName=self._table, Item=item, **condition)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise Conflict(conflict) from None
            raise

    def _record(self, key: str, body: str, outcome: str, now: float) -> None:
        item = {
            "pk": {"S": key},
            "version": {"N": "1"},
            "body": {"S": body},
            "outcome": {"S": outcome},
            "at": {"N": repr(now)},
            "expires_at": {"N": str(int(now) + ANNOUNCEMENT_DAYS * 86_400)},
        }
        try:
            self._write(item, 0, "recorded already")
        except Conflict:
            return


def _incident(item: dict[str, Any]) -> Incident:
    return replace(from_json(item["document"]["S"]), version=int(item["version"]["N"]))
