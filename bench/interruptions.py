"""How soon an announcement is decided on, and what becomes of a thousand at once.

    python -m bench.interruptions

On the twin's AWS with the functions as deployed: event to decision and event to replacement call,
warm and cold; then 1,000 messages about 200 instances (duplicates, any order, poison), through the
toolkit and through the node termination handler alone. Writes out/bench/interruptions.json and a
plot. `lost` counts distinct messages that left neither what they ask for nor a record; `duplicates`
counts incidents, or drains, of an instance beyond the first.
"""

from __future__ import annotations

import json
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.storm import termination_handler
from bench.storm.burst import Member, Message, Shares, burst, retirement
from bench.storm.ground import Ground, Progress, build, step, terminate, until
from cli.setup import prepare_tools
from core.cluster import ClusterSpec
from core.fields import digest
from core.incident_record import State, from_json, incident_id
from local import twin as twins
from local.demo import spec as demo

INSTANCES, EVENTS, SEED = 200, 1000, 20260127
WARM, COLD = 25, 5
LOOK_SECONDS = 0.01
BURST_LIMIT_SECONDS = 120.0
# It takes ten messages every two seconds: two hundred seconds for a thousand, at the very best.
NTH_LIMIT_SECONDS = 220.0
QUIET_SECONDS = 6.0
NTH_VISIBILITY_SECONDS = 20.0
NOT_FOR_NTH = ("volume", "zone", "group")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the burst on one of the two ways."""

    seconds: float
    handled: int
    lost: Counter[str]
    duplicates: int
    wrong: int  # instances given an incident, or drained, that nothing was to happen to
    left: int  # messages still in the queue, or among its dead letters
    restarts: int = 0
    notes: Counter[str] | None = None


def main() -> None:
    """Measure, write down, draw, and show the two side by side."""
    console = Console(stderr=True)
    prepare_tools(console)
    began = time.monotonic()
    with console.status("starting AWS and the control plane") as status:
        say = Progress(status.update, console.log)
        with twins.running(say.done, machines=False) as twin:
            spec = ClusterSpec.model_validate(demo.spec(twin.place))
            ground = build(twin, spec, INSTANCES, say)
            with step(say, f"{WARM} announcements, warm"):
                warm = [_sample(ground, number, "warm") for number in range(WARM + 2)][2:]
            with step(say, f"{COLD} announcements, cold"):
                cold = [_sample(ground, number, "cold") for number in range(COLD)]
            messages, shares = _prepare(ground, say)
            ours = _through_the_toolkit(ground, messages, shares, say)
            nth = _through_nth(ground, messages, shares, say)
    summary = _summary(warm, cold, ours, nth)
    path = record.write(
        "interruptions", _parameters(messages, time.monotonic() - began), [], summary
    )
    document = json.loads(path.read_text())
    document["rows"] = [*warm, *cold, *_rows(ours, nth)]
    path.write_text(json.dumps(document, indent=2) + "\n")
    _draw(warm, cold, ours, nth, path.with_suffix(".png"))
    _show(summary, ours, nth)
    print(f"{path}: {time.monotonic() - began:.0f} s")


def _sample(ground: Ground, number: int, start: str) -> dict[str, Any]:
    """Announce one retirement; return when it was decided on, and when its group was asked."""
    if start == "cold":
        ground.renew(number)
    member = ground.members[number * 5 % len(ground.members)]
    before = _desired(ground, member)
    sent = time.monotonic()
    ground.send("events", [retirement(member, str(uuid.uuid4()))])
    until(lambda: _decided(ground, member), f"the retirement of {member.id} is decided on")
    decided = time.monotonic()
    until(lambda: _desired(ground, member) > before, f"{member.group} is asked for another")
    asked = time.monotonic()
    ground.forget()
    return {
        "what": "announcement",
        "start": start,
        "decision_ms": round(1000 * (decided - sent), 1),
        "replacement_ms": round(1000 * (asked - sent), 1),
    }


def _decided(ground: Ground, member: Member) -> bool:
    time.sleep(LOOK_SECONDS)
    item = (
        ground.aws("dynamodb")
        .get_item(
            TableName=ground.table, Key={"pk": {"S": f"incident#{incident_id(member.id, 1)}"}}
        )
        .get("Item")
    )
    return item is not None and item["state"]["S"] != State.OPENED


def _desired(ground: Ground, member: Member) -> int:
    groups = ground.aws("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[member.group]
    )
    return int(groups["AutoScalingGroups"][0]["DesiredCapacity"])


def _prepare(ground: Ground, say: Progress) -> tuple[list[Message], Shares]:
    """Terminate a fifth of the instances, and make the burst around what their groups say."""
    for function in ("interruption", "tick"):
        ground.feed(function, enabled=False)
    ground.forget()
    for queue in ("events", "ticks"):
        ground.aws("sqs").purge_queue(QueueUrl=ground.queues[queue])
    # Spread over the zones, as the ids are.
    shares = Shares.of(ground.members)
    with step(say, f"{len(shares.terminated)} instances wait in their groups' hooks"):
        announced = terminate(ground, shares.terminated)
    return burst(shares, announced, size=EVENTS, seed=SEED), shares


def _through_the_toolkit(
    ground: Ground, messages: Sequence[Message], shares: Shares, say: Progress
) -> Outcome:
    ground.send("events", [message.body for message in messages])
    with step(say, "the burst through the toolkit"):
        began = time.monotonic()
        ground.feed("interruption", enabled=True)
        deadline = began + BURST_LIMIT_SECONDS
        while (left := ground.left_in("events")) and time.monotonic() < deadline:
            say.now(f"the burst through the toolkit: {left} messages left")
            time.sleep(0.25)
        seconds = time.monotonic() - began
    items = ground.items()
    rounds = Counter(i["instance_id"]["S"] for i in items if "instance_id" in i)
    kept = {digest(i["body"]["S"]) for i in items if "body" in i}
    distinct = set(messages)
    lost = Counter(
        message.kind
        for message in distinct
        if not (message.leaving <= rounds.keys() if message.leaving else _kept(message.body, kept))
    )
    return Outcome(
        seconds=seconds,
        handled=len(distinct) - lost.total(),
        lost=lost,
        duplicates=sum(count - 1 for count in rounds.values()),
        wrong=len(rounds.keys() - shares.leaving - {m.id for m in shares.advised}),
        left=ground.left_in("events") + ground.left_in("events dead letters"),
        notes=Counter(
            from_json(i["document"]["S"]).kind.value for i in items if "instance_id" in i
        ),
    )


def _kept(body: str, kept: set[str]) -> bool:
    return digest(body) in kept


def _through_nth(
    ground: Ground, messages: Sequence[Message], shares: Shares, say: Progress
) -> Outcome:
    # What its guide's rules would bring to its queue, and what somebody put there by mistake.
    messages = [message for message in messages if message.kind not in NOT_FOR_NTH]
    ground.send("alone", [message.body for message in messages])
    distinct = set(messages)
    poison = sum(message.kind == "poison" for message in distinct)
    with step(say, "the burst through the node termination handler"):
        began = changed = time.monotonic()
        before = len(messages)
        with termination_handler.running(ground) as handler:
            while (now := time.monotonic()) < began + NTH_LIMIT_SECONDS:
                handler.look()
                waits = ground.left_in("alone")
                if waits != before:
                    before, changed = waits, now
                if waits <= poison and now - changed > QUIET_SECONDS:
                    break
                say.now(f"the burst through the node termination handler: {waits} messages left")
                time.sleep(0.5)
            drains, warnings = handler.drains(), handler.warnings()
    drained = _drained(ground)
    waiting = _in_hooks(ground, shares.terminated)
    # What it was still working on is seen again by then, and is not lost.
    say.now("looking for what is left in the queue")
    time.sleep(NTH_VISIBILITY_SECONDS)
    left = ground.received("alone")
    unread = set(left)
    undone = [message for message in distinct if not _answered(message, drained, waiting)]
    lost = Counter(message.kind for message in undone if message.body not in unread)
    named = {m.node for m in shares.untouched}
    return Outcome(
        seconds=changed - began,
        handled=len(distinct) - len({message.body for message in undone} | unread),
        lost=lost,
        duplicates=sum(count - 1 for count in drains.values()),
        wrong=sum(node in drains for node in named),
        left=len(left),
        restarts=handler.restarts + handler.crashed,
        notes=warnings,
    )


def _answered(message: Message, drained: set[str], waiting: set[str]) -> bool:
    """Say whether NTH did what a message asks for; one that asks for nothing it may delete."""
    if message.kind == "terminate hook" and message.leaving & waiting:
        return False
    return message.leaving <= drained


def _drained(ground: Ground) -> set[str]:
    """Return the instances whose node is cordoned and has no broker any more."""
    nodes, busy = ground.nodes(), set(ground.pods().values())
    return {
        member.id
        for member in ground.members
        if member.node not in busy
        and (member.node not in nodes or nodes[member.node]["spec"].get("unschedulable"))
    }


def _in_hooks(ground: Ground, members: Sequence[Member]) -> set[str]:
    """Return the instances whose hook was never completed."""
    pages = ground.aws("autoscaling").get_paginator("describe_auto_scaling_instances").paginate()
    states = {
        each["InstanceId"]: each["LifecycleState"]
        for page in pages
        for each in page["AutoScalingInstances"]
    }
    return {m.id for m in members if states.get(m.id) == "Terminating:Wait"}


def _percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile as measured: the value that so many in a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-len(ordered) * percent // 100) - 1)]


def _summary(
    warm: Sequence[dict[str, Any]], cold: Sequence[dict[str, Any]], ours: Outcome, nth: Outcome
) -> dict[str, object]:
    decisions = [row["decision_ms"] for row in warm]
    return {
        "decision_warm_p50_ms": round(statistics.median(decisions), 1),
        "decision_warm_p99_ms": _percentile(decisions, 99),
        "decision_cold_p99_ms": _percentile([row["decision_ms"] for row in cold], 99),
        "replacement_p99_ms": _percentile([row["replacement_ms"] for row in warm], 99),
        "replacement_cold_p99_ms": _percentile([row["replacement_ms"] for row in cold], 99),
        "burst_events": EVENTS,
        "burst_lost": ours.lost.total() + ours.left,
        "burst_duplicates": ours.duplicates,
        "burst_wrong": ours.wrong,
        "burst_s": round(ours.seconds, 1),
        "nth_burst_lost": nth.lost.total(),
        "nth_burst_duplicates": nth.duplicates,
        "nth_burst_wrong": nth.wrong,
        "nth_burst_left": nth.left,
        "nth_burst_restarts": nth.restarts,
        "nth_burst_s": round(nth.seconds, 1),
    }


def _parameters(messages: Sequence[Message], seconds: float) -> dict[str, object]:
    kinds = Counter(message.kind for message in set(messages))
    return {
        "instances": INSTANCES,
        "events": EVENTS,
        "distinct": len(set(messages)),
        "kinds": dict(kinds),
        "seed": SEED,
        "warm": WARM,
        "cold": COLD,
        "nth_limit_s": NTH_LIMIT_SECONDS,
        "nth_events": sum(message.kind not in NOT_FOR_NTH for message in messages),
        "nth_queue": "visibility 20 s, no dead letters, 10 workers: its guide's",
        "real": "API server, controllers, authenticator, NTH, the functions' zip and runtime",
        "stand_ins": "moto with the twin's lifecycle and pollers for AWS; no kubelet, no Kafka",
        "burst_s": "until the queue is empty: every message has its incident or its record",
        "nth_burst_s": "until only what it cannot read is left, or the limit; drains included",
        "cold_means": "new processes of both functions, files in the page cache",
        "run_s": round(seconds, 1),
    }


def _rows(ours: Outcome, nth: Outcome) -> list[dict[str, object]]:
    return [
        {
            "what": "burst",
            "through": name,
            "seconds": round(outcome.seconds, 2),
            "handled": outcome.handled,
            "lost": dict(outcome.lost),
            "duplicates": outcome.duplicates,
            "wrong": outcome.wrong,
            "left_in_queue": outcome.left,
            "restarts": outcome.restarts,
            "notes": dict(outcome.notes or {}),
        }
        for name, outcome in (("stillwater", ours), ("nth", nth))
    ]


def _show(summary: dict[str, Any], ours: Outcome, nth: Outcome) -> None:
    console = Console()
    times = Table("one announcement", "decided, ms", "replacement asked for, ms")
    times.add_row("warm, p50", str(summary["decision_warm_p50_ms"]), "")
    times.add_row(
        "warm, p99", str(summary["decision_warm_p99_ms"]), str(summary["replacement_p99_ms"])
    )
    times.add_row(
        "cold, p99", str(summary["decision_cold_p99_ms"]), str(summary["replacement_cold_p99_ms"])
    )
    console.print(times)
    both = Table(f"{EVENTS} messages, {INSTANCES} instances", "stillwater", "NTH alone", "ratio")
    for what, mine, theirs in (
        ("distinct messages answered or recorded", ours.handled, nth.handled),
        ("lost", ours.lost.total(), nth.lost.total()),
        ("incidents or drains beyond the first", ours.duplicates, nth.duplicates),
        ("acted on though nothing leaves", ours.wrong, nth.wrong),
        ("left in the queue", ours.left, nth.left),
        ("restarts", ours.restarts, nth.restarts),
        ("seconds", round(ours.seconds, 1), round(nth.seconds, 1)),
    ):
        ratio = f"{theirs / mine:.1f}" if mine else "-"
        both.add_row(what, str(mine), str(theirs), ratio)
    console.print(both)


def _draw(
    warm: Sequence[dict[str, Any]],
    cold: Sequence[dict[str, Any]],
    ours: Outcome,
    nth: Outcome,
    path: Path,
) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - a second that nobody else needs

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of a backend

    figure, (times, counts) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for rows, name in ((warm, "warm"), (cold, "cold")):
        for what, style in (("decision_ms", "-"), ("replacement_ms", "--")):
            values = sorted(row[what] for row in rows)
            share = [100 * (place + 1) / len(values) for place in range(len(values))]
            label = f"{name}, {what.removesuffix('_ms')}"
            times.step(values, share, style, where="post", label=label)
    times.set(xlabel="ms after the announcement", ylabel="% of announcements", xlim=(0, None))
    times.legend()
    names = ("lost", "duplicates", "wrong", "left in queue", "seconds")
    for shift, name, outcome in ((-0.2, "stillwater", ours), (0.2, "NTH alone", nth)):
        values = [
            outcome.lost.total(),
            outcome.duplicates,
            outcome.wrong,
            outcome.left,
            outcome.seconds,
        ]
        bars = counts.bar([place + shift for place in range(len(names))], values, 0.4, label=name)
        counts.bar_label(bars, fmt="%.0f")
    counts.set(title=f"{EVENTS} messages about {INSTANCES} instances")
    counts.set_xticks(range(len(names)), names)
    counts.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
