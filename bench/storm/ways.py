"""Sends the same burst two ways and reads what became of it: from the ledger, and from the cluster.

What is expected comes from the burst itself, never from the parser or the logs that are measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.storm import termination_handler
from bench.storm.burst import POISON, BurstMessage, Member, Shares
from bench.storm.ground import BenchProgress, StormTwin, step
from core.ground.fields import digest
from core.incidents.record import from_json

BURST_LIMIT_SECONDS = 150.0
# It takes ten messages every two seconds at best, and about one drain a second: it asks the API
# server five times a second and no more. So it is stopped, and what is left is said.
NTH_LIMIT_SECONDS = 120.0
QUIET_SECONDS = 6.0
NTH_VISIBILITY_SECONDS = 20.0
NOT_FOR_NTH = ("volume", "zone", "group")


@dataclass(frozen=True, slots=True)
class BurstOutcome:
    """What became of the burst on one of the two ways."""

    seconds: float
    handled: int
    lost: Counter[str]
    duplicates: int
    wrong: int  # instances given an incident, or drained, that nothing was to happen to
    left: int  # messages still in the queue, or among its dead letters
    restarts: int = 0
    notes: Counter[str] | None = None


def through_the_toolkit(
    ground: StormTwin, messages: Sequence[BurstMessage], shares: Shares, say: BenchProgress
) -> BurstOutcome:
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
        if not (
            message.leaving <= rounds.keys() if message.leaving else digest(message.body) in kept
        )
    )
    return BurstOutcome(
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


def through_nth(
    ground: StormTwin, messages: Sequence[BurstMessage], shares: Shares, say: BenchProgress
) -> BurstOutcome:
    """Send the termination handler what its guide's rules would, and what came by mistake."""
    messages = [message for message in messages if message.kind not in NOT_FOR_NTH]
    ground.send("alone", [message.body for message in messages])
    distinct = set(messages)
    poison = sum(message.kind == "poison" for message in distinct)
    with (
        step(say, "the burst through the node termination handler"),
        termination_handler.running(ground) as handler,
    ):
        seconds = _drain_time(ground, handler, len(messages), poison, say)
    drained, drains = _drained_instances(ground), handler.drains()
    waiting = _hooked_ids(ground, shares.terminated)
    # What it was still working on is seen again by then, and is not lost.
    say.now("looking for what is left in the queue")
    time.sleep(NTH_VISIBILITY_SECONDS)
    left = ground.receive_all("alone")
    unread = set(left)
    undone = [message for message in distinct if not _is_answered(message, drained, waiting)]
    lost = Counter(message.kind for message in undone if message.body not in unread)
    return BurstOutcome(
        seconds=seconds,
        # A drain is done when it is done, whatever copies of its message are still to come.
        handled=len(distinct) - len(undone) - len(unread & set(POISON)),
        lost=lost,
        duplicates=sum(count - 1 for count in drains.values()),
        wrong=sum(member.node in drains for member in shares.untouched),
        left=len(left),
        restarts=handler.restarts,
        notes=handler.warnings(),
    )


def _drain_time(
    ground: StormTwin,
    handler: termination_handler.RunningHandler,
    sent: int,
    poison: int,
    say: BenchProgress,
) -> float:
    """Return when the queue changed last, once only poison is in it, or time is up."""
    began = changed = time.monotonic()
    before = sent
    while (now := time.monotonic()) < began + NTH_LIMIT_SECONDS:
        handler.look()
        left = ground.left_in("alone")
        if left != before:
            before, changed = left, now
        if left <= poison and now - changed > QUIET_SECONDS:
            break
        say.now(f"the burst through the node termination handler: {left} messages left")
        time.sleep(0.5)
    return changed - began


def _is_answered(message: BurstMessage, drained: set[str], waiting: set[str]) -> bool:
    """Say whether NTH did what a message asks for; one that asks for nothing it may delete."""
    if message.kind == "terminate hook" and message.leaving & waiting:
        return False
    return message.leaving <= drained


def _drained_instances(ground: StormTwin) -> set[str]:
    """Return the instances whose node is cordoned and has no broker any more."""
    nodes, busy = ground.nodes(), set(ground.pods().values())
    return {
        member.id
        for member in ground.members
        if member.node not in busy
        and (member.node not in nodes or nodes[member.node]["spec"].get("unschedulable"))
    }


def _hooked_ids(ground: StormTwin, members: Sequence[Member]) -> set[str]:
    """Return the instances whose hook was never completed."""
    pages = ground.aws("autoscaling").get_paginator("describe_auto_scaling_instances").paginate()
    states = {
        each["InstanceId"]: each["LifecycleState"]
        for page in pages
        for each in page["AutoScalingInstances"]
    }
    return {m.id for m in members if states.get(m.id) == "Terminating:Wait"}
