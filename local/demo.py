"""The demo: provision, produce, terminate a broker's node, follow it back, count, price, draw.

Every figure is read from what the real parts wrote down: the ledger's transitions, the journal of
nodes, pods and hooks, and the clients' own samples. Nothing is asserted that was not seen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from core import naming
from core.errors import StillwaterError
from core.incident_record import Incident, Transition
from handlers.ledger import DynamoLedger, rounds
from local import demo_cluster, environment, journal, load, narration, story, timeline
from local.aws import billing
from local.tools import build
from local.twin import Twin

BROKER_ID = 10
STEADY_SECONDS = 15.0
AFTER_SECONDS = 8.0
KAFKA_START_SECONDS = 180.0
ROTATION_LIMIT_SECONDS = 300.0


class Provisioned(Protocol):
    """What one `up` of all layers did."""

    @property
    def created(self) -> int: ...
    @property
    def changed(self) -> int: ...
    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]: ...


class Provisioner(Protocol):
    """Runs the stacks' layers through the engine; the command line owns how."""

    @property
    def engine_version(self) -> str: ...
    def up(self, on_progress: Callable[[str], None]) -> Provisioned: ...


# Makes a provisioner for a running twin and the cluster described in a file.
Provision = Callable[[Twin, Path], Provisioner]


@dataclass
class Rotation:
    """What was seen while the node died; times are epoch seconds."""

    terminated_call_at: float
    instance_id: str
    incident: Incident | None = None
    ended_at: float = 0.0

    @property
    def transitions(self) -> tuple[Transition, ...]:
        return self.incident.transitions if self.incident else ()


def run(
    twin: Twin, provision: Provision, output: Path, narrator: narration.Narrator, started: float
) -> list[str]:
    """Run the whole story; write index.html and result.json; return what did not hold."""
    output.mkdir(parents=True, exist_ok=True)
    provisioner = provision(twin, demo_cluster.write(twin.place))
    narrator.chapter("pulumi up: five layers through the real engine")
    first = provisioner.up(narrator.say)
    second = provisioner.up(narrator.say)
    narrator.say(f"the second up changed {second.changed} of {first.created} resources")
    outputs = {name: value for layer in first.outputs.values() for name, value in layer.items()}

    narrator.chapter("Kafka: three controllers, three brokers, a producer with acks=all")
    bootstrap = str(outputs["bootstrap"])
    wait_for_brokers(twin, bootstrap, narrator)
    producing_at = time.time()
    client = twin.start_program("load", "local.load", bootstrap, str(twin.place.directory))
    _wait_for_acks(twin, narrator)
    _pause(twin, STEADY_SECONDS)

    narrator.chapter("A broker's node is terminated through its Auto Scaling group")
    rotation = terminate(twin)
    follow(twin, str(outputs["ledger_table"]), rotation, narrator)
    _pause(twin, AFTER_SECONDS)
    ended_at = time.time()
    client.popen.terminate()
    summary = _summary(twin)
    narrator.say(f"{summary['acked']} records acknowledged, {summary['lost']} of them lost")

    narrator.chapter("What it cost, as Spark reads the bill")
    cost = price(twin, output, producing_at, ended_at)
    result = assemble(twin, rotation, summary, first, second, provisioner.engine_version, cost)
    result["wall_s"] = round(time.time() - started, 1)
    failures = judge(result)
    (output / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    timeline.write_page(output / "index.html", tell(twin, rotation), result, failures)
    return failures


def wait_for_brokers(twin: Twin, bootstrap: str, narrator: narration.Narrator) -> None:
    """Wait until every broker of the cluster is registered and unfenced."""
    started = time.monotonic()
    while time.monotonic() - started < KAFKA_START_SECONDS:
        twin.check_alive()
        unfenced = load.unfenced_brokers(bootstrap.split(","))
        if len(unfenced) == len(demo_cluster.ZONES):
            narrator.say(f"brokers {unfenced} are up after {time.monotonic() - started:.0f} s")
            return
        time.sleep(0.5)
    raise StillwaterError(
        f"Kafka's brokers were not all up within {KAFKA_START_SECONDS:.0f} s; "
        f"their logs are in out/demo/logs."
    )


def _samples(twin: Twin) -> list[dict[str, Any]]:
    path = twin.place.path("samples.jsonl")
    if not path.exists():
        return []
    complete = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in complete.splitlines()]


def _wait_for_acks(twin: Twin, narrator: narration.Narrator) -> None:
    deadline = time.monotonic() + KAFKA_START_SECONDS
    while time.monotonic() < deadline:
        twin.check_alive()
        if any(s["kind"] == "ack" for s in _samples(twin)):
            narrator.say(f"{load.RECORDS_PER_SECOND} records a second are being acknowledged")
            return
        time.sleep(0.3)
    raise StillwaterError(
        f"No record was acknowledged within {KAFKA_START_SECONDS:.0f} s; see load.log."
    )


def _pause(twin: Twin, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        twin.check_alive()
        time.sleep(0.5)


def _summary(twin: Twin) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    path = twin.place.path("summary.json")
    while not path.exists():
        if time.monotonic() > deadline:
            raise StillwaterError("The producer did not finish reading back within 120 s.")
        time.sleep(0.2)
    summary: dict[str, Any] = json.loads(path.read_text())
    return summary


def broker_pod(twin: Twin) -> dict[str, Any]:
    """Return the pod of the broker the demo takes down."""
    pods = twin.api.get("/api/v1/pods", labelSelector=naming.CLUSTER_LABEL)["items"]
    return next(
        p
        for p in pods
        if naming.node_id_of_pod(p["metadata"]["name"]) == BROKER_ID and p["spec"].get("nodeName")
    )


def terminate(twin: Twin) -> Rotation:
    """Terminate the broker's node as an operator would: through its group, size unchanged."""
    node = twin.api.get(f"/api/v1/nodes/{broker_pod(twin)['spec']['nodeName']}")
    instance_id = node["spec"]["providerID"].rpartition("/")[2]
    called_at = time.time()
    twin.aws("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
    )
    return Rotation(called_at, instance_id)


def follow(twin: Twin, table: str, rotation: Rotation, narrator: narration.Narrator) -> None:
    """Narrate what happens until the incident is over and the instance gone."""
    ledger = DynamoLedger(
        table, demo_cluster.CLUSTER, environment.REGION, client=twin.aws("dynamodb")
    )
    deadline = time.monotonic() + ROTATION_LIMIT_SECONDS
    told: set[tuple[str, float, str]] = set()
    while time.monotonic() < deadline:
        twin.check_alive()
        rotation.incident = _latest_incident(ledger, rotation.instance_id)
        records = journal.read(twin.place)
        for moment in moments(records, rotation):
            key = (moment.source, moment.at_s, moment.text)
            if key not in told:
                told.add(key)
                narrator.moment(moment)
        if _over(twin, records, rotation):
            rotation.ended_at = time.time()
            return
        time.sleep(0.4)
    rotation.ended_at = time.time()
    raise StillwaterError(
        f"The rotation of {rotation.instance_id} was not over after "
        f"{ROTATION_LIMIT_SECONDS:.0f} s; its incident stands in "
        f"{rotation.transitions[-1].state if rotation.transitions else 'no state'}."
    )


def _over(twin: Twin, records: Iterable[Mapping[str, Any]], rotation: Rotation) -> bool:
    over = rotation.incident is not None and not rotation.incident.open
    gone = story.first(records, "instance_terminated", instance=rotation.instance_id)
    return bool(
        over
        and gone
        and story.back_in_isr_at(isr_samples(twin), BROKER_ID, rotation.terminated_call_at)
    )


def isr_samples(twin: Twin) -> list[dict[str, Any]]:
    return [s for s in _samples(twin) if s["kind"] == "isr"]


def moments(records: Iterable[Mapping[str, Any]], rotation: Rotation) -> list[story.Moment]:
    """Return the journal and the decisions as one sequence in time."""
    since = rotation.terminated_call_at
    return sorted(
        [
            *story.journal_moments(records, since),
            *story.decision_moments(rotation.transitions, since),
        ],
        key=lambda m: m.at_s,
    )


def _latest_incident(ledger: DynamoLedger, instance_id: str) -> Incident | None:
    """Return the instance's incident: the demo terminates it once, so the last is the one."""
    found = rounds(ledger, instance_id)
    return found[-1] if found else None


def price(twin: Twin, output: Path, started_at: float, ended_at: float) -> dict[str, str]:
    """Write the simulated bill of what really ran and let the cost job read it."""
    from spark.jobs import cost  # noqa: PLC0415 - Spark's JVM starts only when it is needed

    bill = billing.write_bill(
        twin.place,
        ec2=twin.aws("ec2"),
        out=output / "bill",
        started_at=started_at,
        ended_at=ended_at,
        bytes_between_zones=None,
    )
    report = cost.run(cur=bill.path, out=output / "cost")
    return {"bill_total": str(bill.total), "report_total": str(report.report_total)}


def assemble(
    twin: Twin,
    rotation: Rotation,
    summary: Mapping[str, Any],
    first: Provisioned,
    second: Provisioned,
    engine_version: str,
    cost: Mapping[str, str],
) -> dict[str, Any]:
    """Put the result together; every time counts from the terminate call."""
    since = rotation.terminated_call_at
    records = [r for r in journal.read(twin.place) if r["at"] >= since]
    acks = [s for s in _samples(twin) if s["kind"] == "ack"]
    latency = {
        "steady": [s["ms"] for s in acks if s["at"] < since],
        "rotation": [s["ms"] for s in acks if since <= s["at"] <= rotation.ended_at],
    }

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
            "forwarded_at_s": after(rotation.incident.forwarded_at if rotation.incident else None),
            "drained_at_s": seen(
                "hook_completed", hook=naming.DRAIN_HOOK, instance=rotation.instance_id
            ),
        },
        "replacement_ready_at_s": seen("node_ready"),
        "broker_back_in_isr_at_s": after(story.back_in_isr_at(isr_samples(twin), BROKER_ID, since)),
        "instance_terminated_at_s": seen("instance_terminated", instance=rotation.instance_id),
        "acked": summary["acked"],
        "lost": summary["lost"],
        "client_errors": summary["client_errors"],
        "latency_ms": {k: asdict(story.percentiles(v)) for k, v in latency.items()},
        "incident": {
            "id": rotation.incident.id if rotation.incident else None,
            "states": [{"state": t.state, "at_s": after(t.at)} for t in rotation.transitions],
        },
        "cost": dict(cost),
    }


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
    if result["lost"]:
        failures.append(f"{result['lost']} acknowledged records cannot be read back.")
    if changed:
        failures.append(f"The second pulumi up changed {changed} resources instead of none.")
    if cost["bill_total"] != cost["report_total"]:
        failures.append(
            f"The report's total {cost['report_total']} differs from the bill's "
            f"{cost['bill_total']}."
        )
    return failures


def tell(twin: Twin, rotation: Rotation) -> story.Story:
    """Build the timeline's story from everything that was written down."""
    since, end = rotation.terminated_call_at, rotation.ended_at
    records = journal.read(twin.place)
    samples = _samples(twin)
    return story.Story(
        moments=tuple(moments(records, rotation)),
        spans=tuple(story.spans(records, rotation.transitions, since, end)),
        latency=tuple((s["at"] - since, s["ms"]) for s in samples if s["kind"] == "ack"),
        isr=tuple((s["at"] - since, s["smallest"]) for s in samples if s["kind"] == "isr"),
    )
