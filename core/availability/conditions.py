"""Reads what a Kafka resource's status says of its operator's last reconciliation.

Source: Strimzi 1.2.0: trouble is the condition NotReady, a change that the operator ignores is a
Warning beside Ready, and Ready stays True during a roll, with the older observedGeneration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.fields import epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConditions:
    """A Kafka's conditions; times in epoch seconds, None where nobody says."""

    name: str
    observed: bool  # the operator has finished with its present generation
    ready: bool = False
    not_ready: bool = False
    not_ready_reason: str = ""
    not_ready_message: str = ""
    not_ready_since: float | None = None
    warnings: tuple[str, ...] = ()
    paused: bool = False
    paused_since: float | None = None


def kafka_conditions(kafka: Mapping[str, Any]) -> KafkaConditions:
    """Read a Kafka resource; raises what a wrong shape raises."""
    metadata, status = kafka["metadata"], kafka.get("status") or {}
    found = {
        each["type"]: each
        for each in status.get("conditions") or ()
        if each["type"] != "Warning" and each["status"] == "True"
    }
    trouble, pause = found.get("NotReady", {}), found.get("ReconciliationPaused", {})
    observed = status.get("observedGeneration")
    return KafkaConditions(
        name=metadata["name"],
        observed=observed is not None and int(observed) >= int(metadata["generation"]),
        ready="Ready" in found,
        not_ready="NotReady" in found,
        not_ready_reason=str(trouble.get("reason") or ""),
        not_ready_message=str(trouble.get("message") or ""),
        not_ready_since=epoch(trouble.get("lastTransitionTime")),
        warnings=tuple(
            str(each.get("message") or each.get("reason"))
            for each in status.get("conditions") or ()
            if each["type"] == "Warning"
        ),
        paused="ReconciliationPaused" in found,
        paused_since=epoch(pause.get("lastTransitionTime")),
    )
