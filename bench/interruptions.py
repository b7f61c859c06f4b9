"""Measures how soon an announcement is decided on, and what becomes of a thousand at once.

    python -m bench.interruptions

On the twin's AWS with the functions as deployed: event to decision and event to replacement call,
warm and cold; then 1,000 messages about 200 instances (duplicates, any order, poison), through the
toolkit and through the node termination handler alone. Writes out/bench/interruptions.json and a
plot. `lost` counts distinct messages that left neither what they ask for nor a record, and wait in
no queue; `duplicates` counts incidents, or drains, of an instance beyond the first. NTH is stopped
after two minutes: what it has not come to by then is `left`, not lost.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from rich.console import Console

from bench import record
from bench.storm.burst import BurstMessage, Member, Shares, burst, retirement
from bench.storm.ground import BenchProgress, StormTwin, step, terminate
from bench.storm.making import build
from bench.storm.report import (
    COLD,
    EVENTS,
    INSTANCES,
    SEED,
    WARM,
    draw,
    parameters,
    rows,
    show,
    summary,
)
from bench.storm.ways import through_nth, through_the_toolkit
from bench.waiting import until
from core.cluster import ClusterSpec
from core.incidents.record import State, incident_id
from local import twin as twins
from local.commands.setup import prepare_tools
from local.demo import spec as demo

LOOK_SECONDS = 0.01


def main() -> None:
    """Measure, write down, draw, and show the two side by side."""
    console = Console(stderr=True)
    prepare_tools(console)
    began = time.monotonic()
    with console.status("starting AWS and the control plane") as status:
        say = BenchProgress(status.update, console.log)
        with twins.running(say.done, machines=False) as twin:
            spec = ClusterSpec.model_validate(demo.spec(twin.place))
            ground = build(twin, spec, INSTANCES, say)
            with step(say, f"{WARM} announcements, warm"):
                warm = [_sample(ground, number, "warm") for number in range(WARM + 2)][2:]
            with step(say, f"{COLD} announcements, cold"):
                cold = [_sample(ground, number, "cold") for number in range(COLD)]
            messages, shares = _prepare(ground, say)
            ours = through_the_toolkit(ground, messages, shares, say)
            nth = through_nth(ground, messages, shares, say)
    figures = summary(warm, cold, ours, nth)
    path = record.write(
        "interruptions",
        parameters(messages, time.monotonic() - began),
        [*warm, *cold, *rows(ours, nth)],
        figures,
    )
    draw(warm, cold, ours, nth, path.with_suffix(".png"))
    show(ours, nth)


def _sample(ground: StormTwin, number: int, start: str) -> dict[str, Any]:
    """Announce one retirement; return when it was decided on, and when its group was asked."""
    if start == "cold":
        ground.renew(number)
    member = ground.members[number * 5 % len(ground.members)]
    before = _desired_capacity(ground, member)
    sent = time.monotonic()
    ground.send("events", [retirement(member, str(uuid.uuid4()))])
    until(
        lambda: _is_decided(ground, member),
        f"the retirement of {member.id} is decided on",
        look_seconds=LOOK_SECONDS,
    )
    decided = time.monotonic()
    until(
        lambda: _desired_capacity(ground, member) > before,
        f"{member.group} is asked for another",
        look_seconds=LOOK_SECONDS,
    )
    asked = time.monotonic()
    ground.forget()
    return {
        "what": "announcement",
        "start": start,
        "decision_ms": round(1000 * (decided - sent), 1),
        "replacement_ms": round(1000 * (asked - sent), 1),
    }


def _is_decided(ground: StormTwin, member: Member) -> bool:
    item = (
        ground.aws("dynamodb")
        .get_item(
            TableName=ground.table, Key={"pk": {"S": f"incident#{incident_id(member.id, 1)}"}}
        )
        .get("Item")
    )
    return item is not None and item["state"]["S"] != State.OPENED


def _desired_capacity(ground: StormTwin, member: Member) -> int:
    groups = ground.aws("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[member.group]
    )
    return int(groups["AutoScalingGroups"][0]["DesiredCapacity"])


def _prepare(ground: StormTwin, say: BenchProgress) -> tuple[list[BurstMessage], Shares]:
    """Terminate a fifth of the instances, and make the burst around what their groups say."""
    for function in ("interruption", "tick"):
        ground.feed(function, enabled=False)
    ground.forget()
    for queue in ("events", "ticks"):
        ground.aws("sqs").purge_queue(QueueUrl=ground.queues[queue])
    # Spread over the zones, as the ids are.
    shares = Shares.split(ground.members)
    with step(say, f"{len(shares.terminated)} instances wait in their groups' hooks"):
        announced = terminate(ground, shares.terminated)
    return burst(shares, announced, size=EVENTS, seed=SEED), shares


if __name__ == "__main__":
    main()
