"""Reads the ledger's archive: one JSON line per incident, in a folder per day it ended.

λ sweep writes it (handlers.incidents.broom). A rotation here is an incident of a Kafka node that is
over; of rounds filed twice the later line counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from core.ground.errors import InvalidInput
from spark.files import Files
from spark.ingest.delivery import readable
from spark.rows import Found, row_type
from spark.samples import moment_of
from spark.schemas import ROTATIONS

_TIMES = ("opened_at", "forwarded_at", "lost_at", "broker_back_at", "closed_at")
_Row = row_type(ROTATIONS)


def read(files: Files, address: str, *, archive_name: str, cluster: str) -> list[Found]:
    """Return the ROTATIONS of one cluster, under the name its bill knows it by.

    `archive_name` is what the archive calls it (environment and name). Raises InvalidInput for a
    folder that cannot be read or holds a line that is no JSON.
    """
    what = f"The rotation history {address}"
    if not (files.is_folder(address) or files.is_file(address)):
        raise InvalidInput([f"{what} is not there; name the folder of the ledger's archive."])
    with readable(what):
        names = [address] if files.is_file(address) else files.below(address, ".jsonl")
        lines = [line for name in names for line in files.read(name).splitlines() if line.strip()]
        return rotations((_incident(line, what) for line in lines), archive_name, cluster)


def _incident(line: bytes, what: str) -> dict[str, Any]:
    """Return one line as it is written, its times as numbers."""
    try:
        found = json.loads(line)
        times = {name: None if found.get(name) is None else float(found[name]) for name in _TIMES}
        node_id = None if found.get("node_id") is None else int(found["node_id"])
    except (ValueError, TypeError, AttributeError):
        shown = line.decode(errors="replace")[:80]
        problem = f"{what} holds a line that is not an incident: {shown!r}; remove it."
        raise InvalidInput([problem]) from None
    return {**found, **times, "node_id": node_id}


def rotations(lines: Iterable[Mapping[str, Any]], archive_name: str, cluster: str) -> list[Found]:
    """Turn the archive's lines into ROTATIONS of one cluster."""
    latest: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        is_over = line["closed_at"] is not None and line["node_id"] is not None
        if line.get("cluster") not in (archive_name, cluster) or not is_over:
            continue
        known = latest.get(line["id"])
        if known is None or line["closed_at"] > known["closed_at"]:
            latest[line["id"]] = line
    return [_row(line, cluster) for line in latest.values()]


def _row(line: Mapping[str, Any], cluster: str) -> Found:
    opened, forwarded, lost, back, closed = (moment_of(line[name]) for name in _TIMES)
    return _Row(
        billing_period=f"{closed:%Y-%m}",
        cluster=cluster,
        incident=line["id"],
        instance_id=line.get("instance_id"),
        node_id=line["node_id"],
        zone=line.get("zone"),
        pool=line.get("pool"),
        kind=line.get("kind"),
        outcome=line.get("state"),
        opened_at=opened,
        stopped_at=forwarded or lost,
        back_at=back,
        closed_at=closed,
    )
