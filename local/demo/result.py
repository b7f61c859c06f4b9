"""Makes the demo's result and verdict of what was seen of one rotation.

Every figure is read from what the real parts wrote down: the ledger's transitions, the journal of
nodes, pods and hooks, and the clients' own samples. Nothing is asserted that was not seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from core.ground import naming
from core.ground.errors import StillwaterError
from core.incidents.record import Incident, Transition
from local import journal
from local.demo import spec as demo_spec
from local.demo import story
from local.demo.costs import Costs
from local.processes import until
from local.tools import build
from local.twin import Twin

if TYPE_CHECKING:
    from local.commands.layers import Provisioned

READ_BACK_SECONDS = 180.0


@dataclass
class DemoRotation:
    """What was seen while the node died; times are epoch seconds."""

    terminated_call_at: float
    instance_id: str
    broker_id: int
    incident: Incident | None = None
    steady_at: float = 0.0  # from here to the call, the clients saw an undisturbed cluster
    ended_at: float = 0.0

    @property
    def transitions(self) -> tuple[Transition, ...]:
        return self.incident.transitions if self.incident else ()


def samples(twin: Twin) -> list[dict[str, Any]]:
    path = twin.place.path("samples.jsonl")
    if not path.exists():
        return []
    complete = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in complete.splitlines()]


def summary(twin: Twin) -> dict[str, Any]:
    path = twin.place.path("summary.json")
    if not until(path.exists, READ_BACK_SECONDS):
        raise StillwaterError(
            f"The producer did not finish reading back within {READ_BACK_SECONDS:.0f} s."
        )
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def isr_samples(twin: Twin) -> list[dict[str, Any]]:
    return [s for s in samples(twin) if s["kind"] == "isr"]


def moments(records: Iterable[Mapping[str, Any]], rotation: DemoRotation) -> list[story.Moment]:
    """Return the journal and the decisions as one sequence in time."""
    since = rotation.terminated_call_at
    return sorted(
        [
            *story.journal_moments(records, since),
            *story.decision_moments(rotation.transitions, since),
        ],
        key=lambda m: m.at_s,
    )


def assemble(
    twin: Twin,
    rotation: DemoRotation,
    summary: Mapping[str, Any],
    first: Provisioned,
    second: Provisioned,
    engine_version: str,
    cost: Costs,
) -> dict[str, Any]:
    """Put the result together; every time counts from the terminate call."""
    since = rotation.terminated_call_at
    records = [r for r in journal.read(twin.place) if r["at"] >= since]
    acks = [s for s in samples(twin) if s["kind"] == "ack"]
    latency = {
        "steady": [s["ms"] for s in acks if rotation.steady_at <= s["at"] < since],
        "rotation": [s["ms"] for s in acks if since <= s["at"] <= rotation.ended_at],
    }

    sent = rotation.incident.forwarded if rotation.incident else None

    def after(at: float | None) -> float | None:
        return None if at is None else round(at - since, 2)

    def seen(event: str, **fields: Any) -> float | None:
        record = story.first(records, event, **fields)
        return after(record["at"] if record else None)

    return {
        "pulumi": {
            "version": engine_version,
            "created": first.created,
            "changed_on_second_up": second.changed,
        },
        "nth": {
            "version": build.version("node-termination-handler"),
            "forwarded_at_s": after(sent.first_at if sent else None),
            "drained_at_s": seen(
                "hook_completed", hook=naming.DRAIN_HOOK, instance=rotation.instance_id
            ),
        },
        "replacement_ready_at_s": seen("node_ready"),
        "broker_back_in_isr_at_s": after(
            story.back_in_isr_at(isr_samples(twin), rotation.broker_id, since)
        ),
        "instance_terminated_at_s": seen("instance_terminated", instance=rotation.instance_id),
        "load_balancer": story.chain(records, rotation.broker_id, _gates(rotation.broker_id)),
        "acked": summary["acked"],
        "lost": summary["lost"],
        "client_errors": summary["client_errors"],
        "latency_ms": {k: asdict(story.percentiles(v)) for k, v in latency.items()},
        "incident": {
            "id": rotation.incident.id if rotation.incident else None,
            "states": [{"state": t.state, "at_s": after(t.at)} for t in rotation.transitions],
        },
        "cost": asdict(cost),
    }


def _gates(broker_id: int) -> list[str]:
    """Return the target groups that must say healthy before a broker of the demo's is Ready."""
    prefix = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"
    roles = (naming.target_group_role(broker_id), naming.target_group_role(None))
    return [naming.target_group(prefix, role) for role in roles]


def judge(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for everything that makes the demo fail."""
    forwarded = result["nth"]["forwarded_at_s"]
    ready = result["replacement_ready_at_s"]
    cost = result["cost"]
    changed = result["pulumi"]["changed_on_second_up"]
    failures = []
    if forwarded is None or ready is None or forwarded < ready:
        failures.append(
            f"The drain was forwarded at {forwarded} s, before the replacement was Ready "
            f"at {ready} s."
        )
    balancer = result["load_balancer"]
    if story.outran_balancer(balancer):
        failures.append(
            f"The restarted broker was Ready {balancer['ready_after_s']} s after its containers, "
            f"and the load balancer called it healthy after {balancer['healthy_after_s']} s."
        )
    if result["lost"]:
        failures.append(f"{result['lost']} acknowledged records cannot be read back.")
    if changed:
        failures.append(f"The second pulumi up changed {changed} resources instead of none.")
    if Decimal(cost["bill_total"]) != Decimal(cost["report_total"]):
        failures.append(
            f"The report's total {cost['report_total']} differs from the bill's "
            f"{cost['bill_total']}."
        )
    rotation = cost["rotation"]
    if rotation is None or rotation["catch_up_seconds"] is None:
        failures.append(
            "The report does not say how long the rotated broker was away and took to catch up."
        )
    return failures


def tell(twin: Twin, rotation: DemoRotation) -> story.Story:
    """Build the timeline's story from everything that was written down."""
    since, end = rotation.terminated_call_at, rotation.ended_at
    records = journal.read(twin.place)
    seen = samples(twin)
    return story.Story(
        moments=tuple(moments(records, rotation)),
        spans=tuple(story.spans(records, rotation.transitions, since, end)),
        latency=tuple((s["at"] - since, s["ms"]) for s in seen if s["kind"] == "ack"),
        isr=tuple((s["at"] - since, s["smallest"]) for s in seen if s["kind"] == "isr"),
    )
