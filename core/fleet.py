"""Decides how a fleet of clusters rolls: who is behind, who may start now, and what stops it.

A fleet keeps nothing. Facts are read from each cluster's ledger, its health and its versions, and
the same facts make the same decision, so that anybody may ask twice. Waves go in order. The next
one begins once every cluster of those before is done and has baked, which counts from the end of
their last rotation. A rotation that was stopped, paused or aborted holds its wave until a person
goes on with it. What could not be read holds the wave, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from core.availability.budget import PERIOD_SECONDS, Spent
from core.ground.fields import Unknown
from core.ground.window import Window, clock
from core.ground.words import listing, span
from core.health.verdict import Health, HealthVerdict
from core.rotation.run_record import Phase, Run, RunState

# As people call what has a version, in the order of the table.
PARTS: Mapping[str, str] = {
    "eks": "EKS",
    "image": "image",
    "strimzi": "Strimzi",
    "kafka": "Kafka",
    "stillwater": "Stillwater",
}
# An image's id is another in every region.
ORDERED = tuple(part for part in PARTS if part != "image")


class Standing(StrEnum):
    """Where a cluster, or a wave, stands."""

    DONE = "done"
    BAKES = "bakes"  # of a wave: done, and watched
    BEHIND = "behind"  # and may start now
    IN_PROGRESS = "in progress"
    WAITS = "waits"
    STOPPED = "stopped"  # a person decides


DONE = Standing.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One environment of a fleet, as far as order depends on it."""

    region: str
    clients: frozenset[str] = frozenset()  # labels of those who speak to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Environments that go before the next wave's, and how long they are watched afterwards."""

    name: str
    environments: tuple[str, ...]
    bake_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What a fleet's file says."""

    name: str
    members: Mapping[str, Member]
    waves: tuple[Wave, ...]
    # How many times faster than its objective allows clients may fail.
    burn_rate: float = 1.0
    rotation_usd: float | None = None  # what one rotation may cost; None: anything
    windows: tuple[Window, ...] = ()  # rotations start inside one of them; none: at any time
    hold: str = ""  # why nothing starts


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationEstimate:
    """What a rotation of the outdated nodes takes."""

    nodes: int
    seconds: float
    usd: float | None  # None: a price is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What was read of one cluster."""

    present: Mapping[str, str | None] | Unknown  # versions, by PARTS
    wanted: Mapping[str, str] | Unknown  # as its description names them; a part left out: any
    outdated: Mapping[int, str] | Unknown  # Kafka's node id -> in what it differs
    estimate: RotationEstimate | Unknown
    run: Run | Unknown | None  # the one that goes on, or the last
    pause: str | Unknown  # who paused the cluster; empty: nobody
    incidents: tuple[str, ...] | Unknown  # open ones that no rotation opened
    health: HealthVerdict | Unknown
    spent: Spent | Unknown | None  # None: nobody counts what clients fail at

    @classmethod
    def unread(cls, why: Unknown) -> ClusterFacts:
        """Return the facts of a cluster of which nothing could be read."""
        return cls(**{each.name: why for each in fields(cls)})

    @property
    def behind(self) -> tuple[str, ...]:
        """Return what is not as described, in words."""
        present, wanted = self.present, self.wanted
        if isinstance(present, Unknown) or isinstance(wanted, Unknown):
            return ()
        return tuple(
            f"{PARTS[part]} {present.get(part) or 'unknown'} instead of {wanted[part]}"
            for part in PARTS
            if part in wanted and not _is_as(present.get(part), wanted[part])
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one cluster stands, and why."""

    name: str
    wave: str
    standing: Standing
    sentence: str
    # Nothing starts beside it in its wave.
    holds: bool = False
    # The rotations of others pause.
    spreads: bool = False


@dataclass(frozen=True, slots=True)
class FleetDecision:
    """Where everybody stands, who may start now, and whose rotation is to pause."""

    clusters: tuple[Placed, ...]
    waves: tuple[tuple[str, Standing], ...]
    sentence: str
    starts: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()


def decide(fleet: Fleet, facts: Mapping[str, ClusterFacts], now: float) -> FleetDecision:
    """Decide about a fleet; `facts` has an entry for each environment."""
    placed = {
        name: _place(name, wave.name, facts[name], fleet)
        for wave in fleet.waves
        for name in wave.environments
    }
    standings: list[tuple[str, Standing]] = []
    current, before = None, ""
    for wave in fleet.waves:
        if current is None:
            before = _why_first(wave, placed, facts, now)
            current = wave if before else None
            if current is not None:
                placed |= _in_wave(fleet, current, placed, facts, now)
            standings.append((wave.name, _wave_standing(wave, placed) if before else DONE))
            continue
        behind = (n for n in wave.environments if placed[n].standing is Standing.BEHIND)
        placed |= {name: _wait(placed[name], before) for name in behind}
        standings.append((wave.name, Standing.WAITS))
    found = [] if current is None else [placed[name] for name in current.environments]
    said = f"All {_count(len(placed), 'cluster')} are as described."
    return FleetDecision(
        clusters=tuple(placed.values()),
        waves=tuple(standings),
        sentence=said if current is None else _summary(current, found, before),
        starts=tuple(p.name for p in found if p.standing is Standing.BEHIND),
        pauses=tuple(n for n in placed if is_moving(facts[n].run))
        if any(p.spreads for p in found)
        else (),
    )


def is_moving(run: Run | Unknown | None) -> bool:
    """Say whether a run goes on, and nobody has asked it to stop."""
    running = isinstance(run, Run) and run.state is RunState.RUNNING
    return running and not (run.pause_asked_by or run.abort_asked_by)  # type: ignore[union-attr]


def _why_first(
    wave: Wave, placed: Mapping[str, Placed], facts: Mapping[str, ClusterFacts], now: float
) -> str:
    """Say what later waves wait for; empty: for nothing of this one."""
    names = [n for n in wave.environments if placed[n].standing is not DONE]
    if names:
        verb = "is" if len(names) == 1 else "are"
        return f"Wave {wave.name} comes first: {listing(names)} {verb} not done."
    ends = [
        run.ended_at + wave.bake_seconds
        for name in wave.environments
        if isinstance(run := facts[name].run, Run) and run.ended_at is not None
    ]
    until = max(ends, default=now)
    return "" if until <= now else f"Wave {wave.name} bakes until {clock(until)}."


def _wave_standing(wave: Wave, placed: Mapping[str, Placed]) -> Standing:
    """Return where a wave stands that is not over."""
    there = {placed[name].standing for name in wave.environments}
    order = (Standing.STOPPED, Standing.IN_PROGRESS, Standing.BEHIND, Standing.WAITS)
    return next((each for each in order if each in there), Standing.BAKES)


def _place(name: str, wave: str, facts: ClusterFacts, fleet: Fleet) -> Placed:
    """Place a cluster by its own facts: the first that speaks against it is named."""
    for standing, sentence, holds, spreads in _obstacles(facts, fleet):
        return Placed(name, wave, standing, f"{name}: {sentence}", holds, spreads)
    assert not isinstance(facts.outdated, Unknown)  # noqa: S101 - an obstacle of its own
    if not facts.outdated:
        return Placed(name, wave, DONE, f"{name} is as described.")
    said = f"{name}: {_count(len(facts.outdated), 'node')} outdated, a rotation may start."
    return Placed(name, wave, Standing.BEHIND, said)


# Standing, sentence, holds, spreads.
_Obstacle = tuple[Standing, str, bool, bool]


_WORDS: Mapping[str, str] = {
    "present": "versions",
    "wanted": "description",
    "outdated": "outdated nodes",
    "estimate": "rotation's plan",
    "run": "rotation in the ledger",
    "pause": "pause in the ledger",
    "incidents": "incidents in the ledger",
    "health": "health",
    "spent": "error budget",
}


def _obstacles(facts: ClusterFacts, fleet: Fleet) -> Iterator[_Obstacle]:
    """Yield what keeps a cluster from being done or started, the gravest first."""
    yield from _stops(facts, fleet)
    for each in fields(facts):
        value = getattr(facts, each.name)
        if isinstance(value, Unknown):
            what = "it" if facts == ClusterFacts.unread(value) else f"the {_WORDS[each.name]}"
            said = f"{what} could not be read ({value.why.rstrip('.')})"
            yield Standing.WAITS, f"{said}, and what is unknown holds the wave.", True, False
    run = facts.run
    if isinstance(run, Run) and not run.over:
        done = sum(turn.phase is Phase.DONE for turn in run.turns)
        said = f"{done} of {_count(len(run.turns), 'node')} rotated. {run.reason}"
        doubts = [doubt for _, doubt, holds, _ in _waits(facts, fleet, rotates=True) if holds]
        yield Standing.IN_PROGRESS, " ".join([said, *doubts]), bool(doubts), False
    yield from _waits(facts, fleet, rotates=False)


def _stops(facts: ClusterFacts, fleet: Fleet) -> Iterator[_Obstacle]:
    """Yield what a person has to decide about."""
    run, health, spent = facts.run, facts.health, facts.spent
    stop = Standing.STOPPED
    if isinstance(run, Run) and run.state is RunState.STOPPED:
        yield stop, f"its rotation stopped. {run.reason}", True, True
    if isinstance(health, HealthVerdict) and health.health is Health.UNHEALTHY:
        yield stop, f"it is unhealthy. {health.reason}", True, True
    if isinstance(spent, Spent) and not spent.silence and spent.attempts:
        rate = spent.percent / 100 * PERIOD_SECONDS / spent.seconds
        if rate > fleet.burn_rate:
            said = (
                f"it misses its objective of {spent.objective_percent:g} %. {spent.failed:.0f} of "
                f"{spent.attempts:.0f} attempts failed within {span(spent.seconds)}, "
                f"{rate:.1f} times what it allows."
            )
            yield stop, said, True, True
    if not isinstance(run, Run):
        return
    if run.state is RunState.PAUSED or (not run.over and run.pause_asked_by):
        said = f"its rotation is paused. {run.reason} `stillwater rotate resume` goes on with it."
        yield stop, said, True, False
    yield from _left_by_last_run(run, facts.outdated)


def _left_by_last_run(run: Run, outdated: Mapping[int, str] | Unknown) -> Iterator[_Obstacle]:
    """Yield why a run that is over is no reason to start the same again."""
    if isinstance(outdated, Unknown) or not outdated or not run.over:
        return
    if run.state is RunState.ABORTED:
        said = f"its rotation was aborted. {run.reason} Start the next one by hand."
        yield Standing.STOPPED, said, True, False
    turns = {turn.node_id: turn for turn in run.turns}
    for node_id, why in outdated.items():
        turn = turns.get(node_id)
        if turn is not None and turn.phase is Phase.SKIPPED:
            said = f"its rotation left node {node_id} out ({why}). Rotate it by hand."
            yield Standing.STOPPED, said, True, False
        elif turn is not None and turn.why == why:
            said = f"its rotation replaced node {node_id}, which still has {why}. Look why first."
            yield Standing.STOPPED, said, True, False


def _waits(facts: ClusterFacts, fleet: Fleet, *, rotates: bool) -> Iterator[_Obstacle]:
    """Yield what passes, or what somebody does beside the fleet."""
    wait = Standing.WAITS
    # While a broker is away by a rotation, its cluster is degraded as it must be.
    well = {Health.HEALTHY, Health.STARTING, Health.DEGRADED} if rotates else {Health.HEALTHY}
    if isinstance(facts.health, HealthVerdict) and facts.health.health not in well:
        yield wait, f"it is {facts.health.health.value}. {facts.health.reason}", True, False
    if isinstance(facts.spent, Spent) and facts.spent.silence:
        yield wait, f"what clients see is unknown. {facts.spent.silence}", True, False
    if not isinstance(facts.incidents, Unknown) and facts.incidents:
        yield wait, f"an incident is open: {listing(facts.incidents, 2)}.", True, False
    if not isinstance(facts.pause, Unknown) and facts.pause:
        yield wait, f"it is paused. {facts.pause}", True, False
    if facts.behind:
        said = f"{', '.join(facts.behind)}. `stillwater up` brings that first."
        yield wait, said, False, False
    estimate, most = facts.estimate, fleet.rotation_usd
    if isinstance(estimate, RotationEstimate) and estimate.nodes and most is not None:
        if estimate.usd is None:
            said = "what its rotation costs is unknown, and the file sets a limit."
            yield wait, said, False, False
        elif estimate.usd > most:
            said = f"its rotation costs about {estimate.usd:.2f} USD, the file allows {most:g}."
            yield wait, said, False, False


def _in_wave(
    fleet: Fleet,
    wave: Wave,
    placed: Mapping[str, Placed],
    facts: Mapping[str, ClusterFacts],
    now: float,
) -> dict[str, Placed]:
    """Return the wave's clusters that are behind, as far as they have to wait for others."""
    found: dict[str, Placed] = {}
    holder = next((placed[n] for n in wave.environments if placed[n].holds), None)
    # A run nobody could read may well go on.
    busy = [n for n in placed if not _is_at_rest(facts[n].run)]
    for name in wave.environments:
        if placed[name].standing is not Standing.BEHIND:
            continue
        why = (
            _why_closed(fleet, now)
            or ("" if holder is None else f"Wave {wave.name} holds. {holder.sentence}")
            or _why_not_beside(name, fleet.members, busy)
            or _why_untried(name, fleet, wave, facts)
        )
        if why:
            found[name] = _wait(placed[name], why)
        else:
            busy.append(name)
    return found


def _is_at_rest(run: Run | Unknown | None) -> bool:
    return run is None or (isinstance(run, Run) and run.over)


def _why_closed(fleet: Fleet, now: float) -> str:
    """Say why nothing starts now, whoever it is; empty: it may."""
    if fleet.hold:
        return f"The fleet's file holds it: {fleet.hold}"
    opens = [window.opening(now)[0] for window in fleet.windows]
    if not opens or min(opens) <= now:
        return ""
    return f"The fleet's window opens at {clock(min(opens))}."


def _why_not_beside(name: str, members: Mapping[str, Member], busy: Iterable[str]) -> str:
    """Say why a cluster does not rotate beside others; empty: it may."""
    own = members[name]
    for other in busy:
        shared = sorted(own.clients & members[other].clients)
        if shared:
            return f"{other} comes first: both have the clients {listing(shared)}."
        if members[other].region != own.region:
            return f"{other} comes first: one region at a time, now {members[other].region}."
    return ""


def _why_untried(name: str, fleet: Fleet, wave: Wave, facts: Mapping[str, ClusterFacts]) -> str:
    """Say which version of a cluster an earlier wave has not run; empty: none."""
    own = facts[name].present
    for earlier in fleet.waves[: fleet.waves.index(wave)]:
        for other in earlier.environments:
            seen = facts[other].present
            if isinstance(own, Unknown) or isinstance(seen, Unknown):
                continue
            for part in ORDERED:
                has, had = own.get(part), seen.get(part)
                if has and had and _numbers(had) < _numbers(has):
                    return (
                        f"{PARTS[part]} {has} was not tried: {other} of an earlier wave has {had}."
                    )
    return ""


def _wait(placed: Placed, why: str) -> Placed:
    return replace(placed, standing=Standing.WAITS, sentence=f"{placed.name} waits. {why}")


_VERBS = {
    Standing.STOPPED: "stopped",
    Standing.IN_PROGRESS: "is in progress",
    Standing.WAITS: "waits",
}


def _summary(wave: Wave, found: list[Placed], before: str) -> str:
    """Return the whole in a sentence or two: whoever holds the others says most."""
    starts = [p.name for p in found if p.standing is Standing.BEHIND]
    if starts:
        return f"Wave {wave.name}: {listing(starts)} may start."
    order, open_ = list(_VERBS), [p for p in found if p.standing in _VERBS]
    if not open_:
        return before
    first = min(open_, key=lambda p: (not p.holds, order.index(p.standing)))
    return f"Wave {wave.name} {_VERBS[first.standing]}. {first.sentence}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, which are what is compared.

    >>> _numbers("v1.35.3-eks-0a1b2c3")
    (1, 35, 3)
    """
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def _is_as(present: str | None, wanted: str) -> bool:
    """Say whether a version is the one that is wanted, as exactly as that is written.

    >>> _is_as("v1.35.3-eks-0a1b2c3", "1.35"), _is_as("4.1.0", "4.2.0"), _is_as(None, "4.2.0")
    (True, False, False)
    """
    if present is None:
        return False
    meant = _numbers(wanted)
    return _numbers(present)[: len(meant)] == meant
