"""An incident as the JSON the ledger keeps, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from core.events import Kind
from core.incidents.record import Incident, State, Transition


def to_json(incident: Incident) -> str:
    return json.dumps(asdict(incident), separators=(",", ":"), sort_keys=True)


def from_json(document: str) -> Incident:
    """Read what `to_json` wrote; a field this version does not know is left out."""
    stored: dict[str, Any] = json.loads(document)
    known = {k: v for k, v in stored.items() if k in Incident.__dataclass_fields__}
    known["kind"], known["state"] = Kind(known["kind"]), State(known["state"])
    for name in ("announcements", "pages"):
        known[name] = tuple(known[name])
    for name in ("transitions", "notes"):
        known[name] = tuple(
            Transition(t["at"], State(t["state"]), t["actor"], t["reason"]) for t in known[name]
        )
    return Incident(**known)
