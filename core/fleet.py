"""Decides how a fleet of clusters rolls: who is behind, who may start now, and what stops it.

A fleet keeps nothing. Facts are read from each cluster's ledger, its health and its versions, and
the same facts make the same decision, so that anybody may ask twice. Waves go in order. The next
one begins once every cluster of those before is done and has baked, which counts from the end of
their last rotation. A rotation that was stopped, paused or aborted holds its wave until a person
goes on with it. What could not be read holds the wave, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple

from core.availability.budget import PERIOD_SECONDS, Spent
from core.cluster.fleet import FleetFile, FleetWave
from core.ground.fields import Unknown
from core.ground.window import clock
from core.ground.words import listing, span
from core.health.verdict import Health, HealthVerdict
from core.rotation.run_record import Phase, Run, RunState

# What has a version, as people call it, in the order of the table.
PARTS: Mapping[str, str] = {
    "eks": "EKS",
    "image": "image",
    "strimzi": "Strimzi",
    "kafka": "Kafka",
    "stillwater": "Stillwater",
}


class Standing(StrEnum):
    """Where a cluster stands, and a wave: of its clusters', the first of these."""

    STOPPED = "stopped"  # a person decides
    IN_PROGRESS = "in progress"
    BEHIND = "behind"  # and may start now
    WAITS = "waits"
    BAKES = "bakes"  # of a wave: done, and watched
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationEstimate:
    """What a rotation of the outdated nodes takes."""

    nodes: int
    seconds: float
    usd: float | None  # None: a price is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What was read of one cluster."""

    versions: Mapping[str, str | None] | Unknown  # by PARTS
    description: Mapping[str, str] | Unknown  # the versions it names; a part left out: any
    nodes: Mapping[int, str] | Unknown  # of each that is outdated, in what it differs
    estimate: RotationEstimate | Unknown
    rotation: Run | Unknown | None  # the one that goes on, or the last
    pause: str | Unknown  # who paused the cluster; empty: nobody
    incidents: tuple[str, ...] | Unknown  # open ones that no rotation opened
    health: HealthVerdict | Unknown
    budget: Spent | Unknown | None  # None: nobody counts what clients fail at

    @classmethod
    def unread(cls, why: Unknown) -> ClusterFacts:
        """Return the facts of a cluster of which nothing could be read."""
        return cls(**{each.name: why for each in fields(cls)})

    @property
    def behind(self) -> tuple[str, ...]:
        """Return what is not as described, in words."""
        has, wanted = self.versions, self.description
        if isinstance(has, Unknown) or isinstance(wanted, Unknown):
            return ()
        return tuple(
            f"{PARTS[part]} {has[part]} instead of {version}"
            for part, version in wanted.items()
            if has.get(part)
            and _numbers(has.get(part))[: len(_numbers(version))] != _numbers(version)
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one cluster stands, and why."""

    name: str
    standing: Standing
    sentence: str
    holds: bool = False  # nothing starts next to it in its wave
    spreads: bool = False  # the rotations of others pause


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDecision:
    """Where everybody stands, who may start now, and whose rotation is to pause."""

    clusters: Mapping[str, Placed]
    waves: Mapping[str, Standing]
    sentence: str
    starts: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()


Facts = Mapping[str, ClusterFacts]


def decide(fleet: FleetFile, facts: Facts, now: float) -> FleetDecision:
    """Decide about a fleet; `facts` has an entry for each environment."""
    names = [name for wave in fleet.waves for name in wave.environments]
    placed = {name: _place(name, facts[name], fleet) for name in names}
    waves: dict[str, Standing] = {}
    first, said, spreads = "", f"All {_count(names, 'cluster')} are as described.", False
    for wave in fleet.waves:
        if first:
            behind = (n for n in wave.environments if placed[n].standing is Standing.BEHIND)
            placed |= {name: _wait(placed[name], first) for name in behind}
            waves[wave.name] = Standing.WAITS
            continue
        placed |= _in_wave(fleet, wave, placed, facts, now)
        own = [placed[name] for name in wave.environments]
        open_ = [each for each in own if each.standing is not Standing.DONE]
        first = _why_first(wave, open_, facts, now)
        found = {each.standing for each in open_} or {Standing.BAKES if first else Standing.DONE}
        waves[wave.name] = next(each for each in Standing if each in found)
        if first:
            said, spreads = _summary(wave, open_) or first, any(each.spreads for each in open_)
    return FleetDecision(
        clusters=placed,
        waves=waves,
        sentence=said,
        starts=tuple(name for name in names if placed[name].standing is Standing.BEHIND),
        pauses=tuple(name for name in names if spreads and is_moving(facts[name].rotation)),
    )


def is_moving(run: Run | Unknown | None) -> bool:
    """Say whether a run goes on, and nobody has asked it to stop."""
    if not isinstance(run, Run) or run.state is not RunState.RUNNING:
        return False
    return run.pause_asked_by is None and run.abort_asked_by is None


def _why_first(wave: FleetWave, open_: list[Placed], facts: Facts, now: float) -> str:
    """Say what later waves wait for; empty: for nothing of this one."""
    if open_:
        verb = "is" if len(open_) == 1 else "are"
        return f"Wave {wave.name} comes first: {listing([p.name for p in open_])} {verb} not done."
    runs = [facts[name].rotation for name in wave.environments]
    ends = [run.ended_at for run in runs if isinstance(run, Run) and run.ended_at is not None]
    until = max(ends, default=0.0) + wave.bake_hours * 3600
    return "" if not ends or until <= now else f"Wave {wave.name} bakes until {clock(until)}."


_VERBS = {
    Standing.STOPPED: "stopped",
    Standing.IN_PROGRESS: "is in progress",
    Standing.WAITS: "waits",
}


def _summary(wave: FleetWave, open_: list[Placed]) -> str:
    """Return a wave in a sentence or two: whoever holds the others says most."""
    if starts := [each.name for each in open_ if each.standing is Standing.BEHIND]:
        return f"Wave {wave.name}: {listing(starts)} may start."
    order = list(Standing)
    found = min(open_, key=lambda p: (not p.holds, order.index(p.standing)), default=None)
    return "" if found is None else f"Wave {wave.name} {_VERBS[found.standing]}. {found.sentence}"


class _Obstacle(NamedTuple):
    """What keeps a cluster from being done, or from being started."""

    standing: Standing
    sentence: str
    holds: bool = True
    spreads: bool = False


def _place(name: str, facts: ClusterFacts, fleet: FleetFile) -> Placed:
    """Place a cluster by its own facts: the gravest that speaks against it is named."""
    for each in _obstacles(facts, fleet):
        return Placed(name, each.standing, f"{name}: {each.sentence}", each.holds, each.spreads)
    if not isinstance(facts.nodes, Unknown) and facts.nodes:
        said = f"{name}: {_count(facts.nodes, 'node')} outdated, a rotation may start."
        return Placed(name, Standing.BEHIND, said)
    return Placed(name, Standing.DONE, f"{name} is as described.")


def _obstacles(facts: ClusterFacts, fleet: FleetFile) -> Iterator[_Obstacle]:
    yield from _stops(facts, fleet)
    run = facts.rotation
    rotates = isinstance(run, Run) and not run.over
    for each in fields(facts):
        value = getattr(facts, each.name)
        # Which nodes are outdated cannot be told of machines that come and go.
        if isinstance(value, Unknown) and not (rotates and each.name == "nodes"):
            what = "it" if facts == ClusterFacts.unread(value) else f"its {each.name}"
            said = f"{what} could not be read ({value.why.rstrip('.')})"
            yield _Obstacle(Standing.WAITS, f"{said}, and what is unknown holds the wave.")
    if isinstance(run, Run) and rotates:
        done = sum(turn.phase is Phase.DONE for turn in run.turns)
        said = f"{done} of {_count(run.turns, 'node')} rotated. {run.reason}"
        doubts = [each.sentence for each in _waits(facts, fleet, rotates=True) if each.holds]
        yield _Obstacle(Standing.IN_PROGRESS, " ".join([said, *doubts]), holds=bool(doubts))
    yield from _waits(facts, fleet, rotates=False)


def _stops(facts: ClusterFacts, fleet: FleetFile) -> Iterator[_Obstacle]:
    """Yield what a person has to decide about."""
    stop, run, spent = Standing.STOPPED, facts.rotation, facts.budget
    if isinstance(run, Run) and run.state is RunState.STOPPED:
        yield _Obstacle(stop, f"its rotation stopped. {run.reason}", spreads=True)
    if isinstance(facts.health, HealthVerdict) and facts.health.health is Health.UNHEALTHY:
        yield _Obstacle(stop, f"it is unhealthy. {facts.health.reason}", spreads=True)
    if isinstance(spent, Spent) and not spent.silence and spent.attempts:
        rate = spent.percent / 100 * PERIOD_SECONDS / spent.seconds
        if rate > fleet.stop.burn_rate:
            said = (
                f"it misses its objective of {spent.objective_percent:g} %. {spent.failed:.0f} of "
                f"{spent.attempts:.0f} attempts failed within {span(spent.seconds)}, "
                f"{rate:.1f} times what it allows."
            )
            yield _Obstacle(stop, said, spreads=True)
    if (
        isinstance(run, Run)
        and not run.over
        and (run.pause_asked_by or run.state is RunState.PAUSED)
    ):
        said = f"its rotation is paused. {run.reason} `stillwater rotate resume` goes on with it."
        yield _Obstacle(stop, said)
    if isinstance(run, Run) and run.over and not isinstance(facts.nodes, Unknown):
        yield from (_Obstacle(stop, said) for said in _left_over(run, facts.nodes))


def _left_over(run: Run, outdated: Mapping[int, str]) -> Iterator[str]:
    """Yield why a run that is over is no reason to start the same again."""
    if outdated and run.state is RunState.ABORTED:
        yield f"its rotation was aborted. {run.reason} Start the next one by hand."
    for turn in run.turns:
        why = outdated.get(turn.node_id)
        if why is not None and turn.phase is Phase.SKIPPED:
            yield f"its rotation left node {turn.node_id} out ({why}). Rotate it by hand."
        # Such a reason names what the node has and what it is to have. Drift has one word for all.
        elif why is not None and turn.why == why and " instead of " in why:
            yield f"its rotation replaced node {turn.node_id}, which still has {why}. Look why."


def _waits(facts: ClusterFacts, fleet: FleetFile, *, rotates: bool) -> Iterator[_Obstacle]:
    """Yield what passes, or what somebody does outside of the fleet."""
    wait = Standing.WAITS
    if isinstance(facts.versions, Mapping) and isinstance(facts.description, Mapping):
        unread = [PARTS[part] for part in facts.description if not facts.versions.get(part)]
        if unread:
            yield _Obstacle(wait, f"its version of {listing(unread)} could not be read.")
    # While a broker is away by a rotation, its cluster is degraded as it must be.
    well = {Health.HEALTHY, Health.STARTING, Health.DEGRADED} if rotates else {Health.HEALTHY}
    if isinstance(facts.health, HealthVerdict) and facts.health.health not in well:
        yield _Obstacle(wait, f"it is {facts.health.health.value}. {facts.health.reason}")
    if isinstance(facts.budget, Spent) and facts.budget.silence:
        yield _Obstacle(wait, f"what clients see is unknown. {facts.budget.silence}")
    if not isinstance(facts.incidents, Unknown) and facts.incidents:
        yield _Obstacle(wait, f"an incident is open: {listing(facts.incidents, 2)}.")
    if not isinstance(facts.pause, Unknown) and facts.pause:
        yield _Obstacle(wait, f"it is paused. {facts.pause}")
    if facts.behind:
        said = f"{', '.join(facts.behind)}. `stillwater up` brings that first."
        yield _Obstacle(wait, said, holds=False)
    if dear := _cost_sentence(facts.estimate, fleet.stop.rotation_usd):
        yield _Obstacle(wait, dear, holds=False)


def _cost_sentence(estimate: RotationEstimate | Unknown, most: float | None) -> str:
    """Say that a rotation may cost more than the file allows; empty: it does not."""
    if isinstance(estimate, Unknown) or not estimate.nodes or most is None:
        return ""
    if estimate.usd is None:
        return "what its rotation costs is unknown, and the file sets a limit."
    about = f"its rotation costs about {estimate.usd:.2f} USD, the file allows {most:g}."
    return about if estimate.usd > most else ""


def _in_wave(
    fleet: FleetFile, wave: FleetWave, placed: Mapping[str, Placed], facts: Facts, now: float
) -> dict[str, Placed]:
    """Return the wave's clusters that are behind, as far as they have to wait for others."""
    found: dict[str, Placed] = {}
    holder = next((placed[name] for name in wave.environments if placed[name].holds), None)
    held = "" if holder is None else f"Wave {wave.name} holds. {holder.sentence}"
    # A run that nobody could read may well go on.
    runs = {name: facts[name].rotation for name in placed}
    busy = [
        n for n, run in runs.items() if not (run is None or (isinstance(run, Run) and run.over))
    ]
    for name in wave.environments:
        if placed[name].standing is not Standing.BEHIND:
            continue
        why = _why_closed(fleet, now) or held or _why_not_next_to(name, fleet, busy)
        if why:
            found[name] = _wait(placed[name], why)
        else:
            busy.append(name)
    return found


def _why_closed(fleet: FleetFile, now: float) -> str:
    """Say why nothing starts now, whoever it is; empty: it may."""
    if fleet.hold:
        return f"The fleet's file holds it: {fleet.hold}"
    opens = min((each.window.opening(now)[0] for each in fleet.windows), default=now)
    return "" if opens <= now else f"The fleet's window opens at {clock(opens)}."


def _why_not_next_to(name: str, fleet: FleetFile, busy: Iterable[str]) -> str:
    """Say why a cluster does not rotate while others do; empty: it may."""
    own = fleet.environments[name]
    for other in busy:
        its = fleet.environments[other]
        if shared := sorted({*own.clients} & {*its.clients}):
            return f"{other} comes first: both have the clients {listing(shared)}."
        if its.region != own.region:
            return f"{other} comes first: one region at a time, now {its.region}."
    return ""


def _wait(placed: Placed, why: str) -> Placed:
    return replace(placed, standing=Standing.WAITS, sentence=f"{placed.name} waits. {why}")


def _count(found: Sized, noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"


def _numbers(version: str | None) -> tuple[int, ...]:
    """Return a version's numbers, which are what is compared; of anything else none.

    >>> _numbers("v1.35.3-eks-0a1b2c3"), _numbers("ami-0a"), _numbers(None)
    ((1, 35, 3), (), ())
    """
    found = re.match(r"v?(\d+(?:\.\d+)*)", version or "")
    return tuple(map(int, found[1].split("."))) if found else ()
