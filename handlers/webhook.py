"""λ webhook: NTH says that a drain has ended -> a note in the incident, and a tick at once.

The one place the internet can reach: NTH can sign nothing and sends static headers only. So
everything is checked before anything is read: size, the token in constant time, the shape. Who
fails learns a status and no more. NTH waits 5 s and never repeats.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger

from core.ground.constants import WEBHOOKS_REFUSED
from core.ground.errors import Conflict, InvalidInput
from core.incidents.joining import DrainReport, is_reported_by, note_report, read_drain_report
from core.incidents.record import Incident
from core.settings.functions import WebhookSettings
from handlers.adapters import metrics
from handlers.adapters.aws import Queue, Secret, tick_message
from handlers.store.ledger import Ledger, rounds
from handlers.store.table import read_settings, retry_on_newer

logger = Logger(service="stillwater")
# Function URLs write header names in lower case.
TOKEN_HEADER = "x-stillwater-token"  # noqa: S105 - the header, not the token
# NTH's event lists a node's labels and pods: a few KiB, far below this on any node.
LARGEST_BODY_BYTES = 64 * 1024


class CallerRefused(Exception):
    """Turns a caller away with a status."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Door:
    """Takes reports in."""

    ledger: Ledger
    ticks: Queue
    token: Secret

    def answer(self, request: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Answer one HTTP request of a function URL (payload format 2.0)."""
        try:
            report = self._drain_report(request)
            incident = retry_on_newer(lambda: self._record(report, now))
        except CallerRefused as refusal:
            metrics.count(WEBHOOKS_REFUSED)
            logger.warning(str(refusal), status=refusal.status.value)
            return _response(refusal.status)
        except Conflict as conflict:
            logger.warning(str(conflict))
            return _response(HTTPStatus.SERVICE_UNAVAILABLE)
        if incident is None:
            outcome = "No incident had this drain forwarded."
            self.ledger.record_ignored(report.nth_event_id, outcome, now)
        else:
            outcome = f"Noted in incident {incident.id}."
        logger.info(
            outcome,
            incident_id=None if incident is None else incident.id,
            event_id=report.announcement_id,
            nth_event_id=report.nth_event_id,
        )
        return _response(HTTPStatus.ACCEPTED)

    def _drain_report(self, request: Mapping[str, Any]) -> DrainReport:
        body = str(request.get("body") or "")
        # Before anything is decoded or compared; base64 is a third longer than what it holds.
        if len(body) > LARGEST_BODY_BYTES * 4 // 3 + 4:
            raise CallerRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "A body was too large.")
        headers = request.get("headers") or {}
        if not self._knows(str(headers.get(TOKEN_HEADER) or "")):
            raise CallerRefused(HTTPStatus.UNAUTHORIZED, "A caller had no valid token.")
        http = (request.get("requestContext") or {}).get("http") or {}
        if http.get("method") != "POST":
            raise CallerRefused(HTTPStatus.METHOD_NOT_ALLOWED, "A call was not a POST.")
        try:
            return read_drain_report(_body_text(body, encoded=bool(request.get("isBase64Encoded"))))
        except InvalidInput as error:
            raise CallerRefused(HTTPStatus.BAD_REQUEST, str(error)) from None

    def _knows(self, given: str) -> bool:
        return bool(given) and (
            _is_same(given, self.token.value()) or _is_same(given, self.token.renew())
        )

    def _record(self, report: DrainReport, now: float) -> Incident | None:
        """Note a report in the incident it concerns; None: it concerns none that is open."""
        found = [i for i in rounds(self.ledger, report.instance_id) if i.open]
        concerned = next((i for i in found if is_reported_by(i, report)), None)
        if concerned is None:
            return None
        changed = note_report(concerned, report, now)
        if changed is concerned:
            return concerned
        written = self.ledger.put(changed)
        # The tick that was due names an older version and would be taken for stale.
        self.ticks.send(tick_message(written.id, written.version))
        return written


def _is_same(given: str, known: str) -> bool:
    """Compare in constant time; digests, since lengths would tell, and a header may be no ASCII."""
    return hmac.compare_digest(_digest(given), _digest(known))


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "backslashreplace")).digest()


def _body_text(body: str, *, encoded: bool) -> str:
    try:
        raw = base64.b64decode(body, validate=True) if encoded else body.encode()
        if len(raw) > LARGEST_BODY_BYTES:
            raise CallerRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "A body was too large.")
        return raw.decode()
    except (binascii.Error, UnicodeError):
        raise CallerRefused(HTTPStatus.BAD_REQUEST, "A body was not UTF-8 text.") from None


def _response(status: HTTPStatus) -> dict[str, Any]:
    return {"statusCode": status.value, "headers": {"content-type": "text/plain"}, "body": ""}


@functools.cache
def _door() -> Door:
    settings = read_settings(WebhookSettings)
    return Door(
        ledger=Ledger(settings.ledger_table, settings.cluster, settings.region),
        ticks=Queue(settings.ticks_queue_url, settings.region),
        token=Secret(settings.secret_arn, settings.region),
    )


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one call of the function URL."""
    del context
    return _door().answer(event, time.time())
