"""The demo: provision, produce, terminate a broker's node, follow it back, count, price, draw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3

from core.ground import naming
from core.ground.errors import StillwaterError
from core.incidents.record import Incident
from handlers.store.ledger import Ledger, rounds
from local import environment, journal
from local.demo import costs, load, narration, result, scrape, story, timeline
from local.demo import spec as demo_spec
from local.demo.clients import WATCHER, Entry
from local.demo.result import DemoRotation
from local.processes import Child
from local.twin import Twin

if TYPE_CHECKING:
    from local.commands.layers import TwinLayers

BROKER_ID = 10
# The first seconds measure how the brokers' JVMs warm up, and are left out of the steady figures.
WARM_UP_SECONDS = 10.0
STEADY_SECONDS = 15.0
AFTER_SECONDS = 8.0
KAFKA_START_SECONDS = 180.0
PROVISIONING = "pulumi up: five layers through the real engine"
DYING = "A broker's node is terminated through its Auto Scaling group"
ROTATION_LIMIT_SECONDS = 300.0


def run(
    twin: Twin,
    provision: Callable[[Twin, Path], TwinLayers],
    output: Path,
    narrator: narration.Narrator,
    started: float,
) -> list[str]:
    """Run the whole story on what `provision` makes; write its pages; return what did not hold."""
    output.mkdir(parents=True, exist_ok=True)
    provisioner = provision(twin, demo_spec.write(twin.place))
    narrator.chapter(PROVISIONING)
    first = provisioner.up(narrator.say)
    second = provisioner.again(narrator.say)
    narrator.say(f"the second up changed {second.changed} of {first.created} resources")
    outputs = {name: value for layer in first.outputs.values() for name, value in layer.items()}

    client = _produce(twin, str(outputs["bootstrap"]), narrator)
    producing_at = time.time()
    scraper = scrape.Scraper(twin)
    scraper.start()
    _wait_for_acks(twin, narrator)
    _pause(twin, WARM_UP_SECONDS)
    steady_at = time.time()
    _pause(twin, STEADY_SECONDS)

    narrator.chapter(DYING)
    rotation = terminate(twin)
    rotation.steady_at = steady_at
    follow(twin, str(outputs["ledger_table"]), rotation, narrator)
    _pause(twin, AFTER_SECONDS)
    ended_at = time.time()
    metrics = scraper.stop(output / "metrics.json")
    summary = _producer_summary(twin, client, narrator)

    cost = costs.report(
        twin,
        output,
        (producing_at, ended_at),
        summary["bytes_between_zones"],
        metrics,
        rotation.incident,
    )
    figures = result.assemble(
        twin, rotation, summary, first, second, provisioner.engine_version, cost
    )
    figures["wall_s"] = round(time.time() - started, 1)
    failures = result.judge(figures)
    (output / "result.json").write_text(json.dumps(figures, indent=2) + "\n")
    (output / "slack.html").write_text(slack_page(twin))
    timeline.write_page(output / "index.html", result.tell(twin, rotation), figures, failures)
    return failures


def _produce(twin: Twin, bootstrap: str, narrator: narration.Narrator) -> Child:
    """Have a producer write as soon as every broker is there."""
    narrator.chapter("Kafka: three controllers, three brokers, a producer with acks=all")
    wait_for_brokers(twin, bootstrap, narrator)
    return twin.start_program("load", "local.demo.load", bootstrap, str(twin.place.directory))


def _producer_summary(twin: Twin, client: Child, narrator: narration.Narrator) -> Mapping[str, Any]:
    """Stop the producer and say what it wrote and what is left of that."""
    client.popen.terminate()
    summary: Mapping[str, Any] = result.summary(twin)
    narrator.say(f"{summary['acked']} records acknowledged, {summary['lost']} of them lost")
    return summary


def slack_page(twin: Twin) -> str:
    """Return the page of what was told in the twin's Slack."""
    answer = urllib3.request("GET", f"{twin.place.url('slack')}/", timeout=10)
    return answer.data.decode()


def wait_for_brokers(twin: Twin, bootstrap: str, narrator: narration.Narrator) -> None:
    """Wait until every broker of the cluster is registered and unfenced."""
    started = time.monotonic()
    connect = Entry(twin.api, bootstrap.split(","), WATCHER)
    while time.monotonic() - started < KAFKA_START_SECONDS:
        twin.check_alive()
        unfenced = load.unfenced_brokers(connect)
        if len(unfenced) == len(demo_spec.ZONES):
            narrator.say(f"brokers {unfenced} are up after {time.monotonic() - started:.0f} s")
            return
        time.sleep(0.5)
    raise StillwaterError(
        f"Kafka's brokers were not all up within {KAFKA_START_SECONDS:.0f} s; "
        f"their logs are in out/demo/logs."
    )


def _wait_for_acks(twin: Twin, narrator: narration.Narrator) -> None:
    deadline = time.monotonic() + KAFKA_START_SECONDS
    while time.monotonic() < deadline:
        twin.check_alive()
        if any(s["kind"] == "ack" for s in result.samples(twin)):
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


def kafka_pod(twin: Twin, node_id: int) -> dict[str, Any]:
    """Return the pod of one Kafka node, which must be on a node of Kubernetes."""
    ours = f"{naming.CLUSTER_LABEL}={demo_spec.CLUSTER}"
    pods = twin.api.get("/api/v1/pods", labelSelector=ours)["items"]
    return next(
        p
        for p in pods
        if naming.node_id_of_pod(p["metadata"]["name"]) == node_id and p["spec"].get("nodeName")
    )


def terminate(twin: Twin, node_id: int = BROKER_ID) -> DemoRotation:
    """Terminate a Kafka node's machine as an operator would: through its group, size unchanged."""
    node = twin.api.get(f"/api/v1/nodes/{kafka_pod(twin, node_id)['spec']['nodeName']}")
    instance_id = node["spec"]["providerID"].rpartition("/")[2]
    called_at = time.time()
    twin.aws("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
    )
    return DemoRotation(called_at, instance_id, node_id)


def follow(twin: Twin, table: str, rotation: DemoRotation, narrator: narration.Narrator) -> None:
    """Narrate what happens until the incident is over and the instance gone."""
    ledger = Ledger(table, demo_spec.CLUSTER, environment.REGION, client=twin.aws("dynamodb"))
    deadline = time.monotonic() + ROTATION_LIMIT_SECONDS
    told: set[tuple[str, float, str]] = set()
    while time.monotonic() < deadline:
        twin.check_alive()
        rotation.incident = _latest_incident(ledger, rotation.instance_id)
        records = journal.read(twin.place)
        for moment in result.moments(records, rotation):
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


def _over(twin: Twin, records: Iterable[Mapping[str, Any]], rotation: DemoRotation) -> bool:
    over = rotation.incident is not None and not rotation.incident.open
    gone = story.first(records, "instance_terminated", instance=rotation.instance_id)
    return bool(
        over
        and gone
        and story.back_in_isr_at(
            result.isr_samples(twin), rotation.broker_id, rotation.terminated_call_at
        )
    )


def _latest_incident(ledger: Ledger, instance_id: str) -> Incident | None:
    """Return the instance's incident: the demo terminates it once, so the last is the one."""
    found = rounds(ledger, instance_id)
    return found[-1] if found else None
