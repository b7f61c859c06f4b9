"""Runs `stillwater incidents` and its verbs (hold, release, pause, ...), and verifies histories.

A wish is one conditional write and one tick; λ tick acts on it like on anything else it observes.
The verification asks none of the modules that decide. It knows only what a record says: it can say
that a history breaks a rule, never that the world kept one (docs/guarantees.md lists the rules).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli import terminal, watching
from cli.target import Cluster, readable_ledger
from cli.terminal import moment_of, say
from cli.watching import Pace, Page
from core.events.announcements import URGENT
from core.ground.errors import InvalidInput, StillwaterError, one_line, passed_on
from core.ground.naming import instance_of, round_of
from core.ground.window import clock
from core.ground.words import span, time_said
from core.incidents.joining import Pause, ask_release, hold, ignore
from core.incidents.record import (
    ALLOWED,
    TERMINAL,
    Incident,
    State,
    Transition,
    flat,
    from_json,
)
from core.slack import durations, outlook, subject, symbol
from handlers.adapters.aws import tick_message

# Functions' clocks differ, and one moment is written by two of them.
CLOCKS_APART_SECONDS = 120.0
_GONE = frozenset({State.RELEASED, State.LOST})


@dataclass(frozen=True, slots=True, order=True)
class Break:
    """One step of a history that breaks a rule."""

    at: float  # epoch seconds
    incident_id: str
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{clock(self.at)} {self.incident_id}: {self.sentence} (rule {self.rule})"


def breaks(histories: Iterable[Incident], *, gate: str = "isr") -> list[Break]:
    """Return every step that breaks a rule, the first one first.

    `histories` are one cluster's. `gate` is the description's: with "ready" a broker need not have
    been seen in every ISR before its old instance went.
    """
    incidents = sorted(histories, key=lambda i: (i.opened_at, i.id))
    found = [b for incident in incidents for rule in _RULES for b in rule(incident)]
    if gate == "isr":
        found.extend(b for incident in incidents for b in _early_ends(incident))
    found.extend(_one_out(incidents))
    found.extend(_rounds(incidents))
    return sorted(found)


def _break(incident: Incident, at: float, rule: str, sentence: str) -> Break:
    return Break(at, incident.id, rule, sentence)


def _steps(incident: Incident) -> Iterator[Break]:
    """Every step is one that a state allows, and the last one is where the incident stands."""
    if not incident.transitions or incident.transitions[0].state is not State.OPENED:
        yield _break(incident, incident.opened_at, "steps", "It does not begin as opened.")
        return
    for before, after in pairwise(incident.transitions):
        if after.state not in ALLOWED[before.state]:
            yield _break(
                incident, after.at, "steps", f"It may not go {before.state} -> {after.state}."
            )
        if after.at < before.at - CLOCKS_APART_SECONDS:
            sentence = f"It is {after.state} {before.at - after.at:.0f} s before {before.state}."
            yield _break(incident, after.at, "order", sentence)
    last = incident.transitions[-1]
    if last.state is not incident.state:
        sentence = f"It is {incident.state}, and its last step was to {last.state}."
        yield _break(incident, last.at, "steps", sentence)


def _drain_breaks(incident: Incident) -> Iterator[Break]:
    """A Kafka node is drained from its turn on, and after its replacement is ready."""
    if incident.forwarded is None or not _waits_for_turn(incident):
        return
    sent_at = incident.forwarded.first_at
    turn = _entered_at(incident, State.HOLDING)
    if turn is None or sent_at < turn - CLOCKS_APART_SECONDS:
        yield _break(
            incident, sent_at, "turn", f"Node {incident.node_id} is drained before its turn."
        )
    found = incident.replacement
    # In place there is none: the instance stays, and never stood in hooks.
    stays = incident.in_place is not None and not incident.hooks
    awaited = incident.expects_return and incident.release is None and not stays
    if awaited and (found is None or sent_at < found.ready_at - CLOCKS_APART_SECONDS):
        sentence = f"Node {incident.node_id} is drained before a replacement is ready."
        yield _break(incident, sent_at, "replacement", sentence)


def _silent_keeps(incident: Incident) -> Iterator[Break]:
    """Nothing is kept for a person without calling one."""
    if incident.state is State.RETAINED and not incident.pages:
        sentence = "The instance is retained, and no page was sent."
        yield _break(incident, incident.entered_at, "paged", sentence)


def _early_ends(incident: Incident) -> Iterator[Break]:
    """An instance goes, or is done in place, when its broker has been seen back.

    Unless nobody expects it.
    """
    gated = _entered_at(incident, State.GATING) is not None and incident.node_id is not None
    waived = not incident.expects_return or incident.release is not None
    in_place = incident.in_place is not None and incident.state is State.RIDDEN_THROUGH
    if not (in_place or incident.state is State.RELEASED) or not gated or waived:
        return
    back_at, at = incident.broker_back_at, incident.entered_at
    if back_at is None or back_at > at + CLOCKS_APART_SECONDS:
        what = "It ends" if in_place else "The instance may go"
        sentence = f"{what} before broker {incident.node_id} is back in every ISR."
        yield _break(incident, at, "gate", sentence)


def _one_out(incidents: Sequence[Incident]) -> Iterator[Break]:
    """No node is drained while another is out by our drain, members of one party apart."""
    sent = [(i.forwarded.first_at, i) for i in incidents if i.forwarded and _waits_for_turn(i)]
    sent.sort(key=lambda each: each[0])
    for place, (_, first) in enumerate(sent):
        for at, second in sent[place + 1 :]:
            if not _together(first, second) and _overlap(first, at):
                yield _break(
                    second,
                    at,
                    "one out",
                    f"Node {second.node_id} is drained while node {first.node_id} of incident "
                    f"{first.id} is out.",
                )


def _waits_for_turn(incident: Incident) -> bool:
    return incident.node_id is not None and incident.kind not in URGENT


def _together(one: Incident, other: Incident) -> bool:
    party = one.party is not None and one.party == other.party
    return party or instance_of(one.id) == instance_of(other.id)


def _overlap(first: Incident, sent_at: float) -> bool:
    """Say whether a drain is sent before the one sent before it has ended, for certain.

    What is retained or lost may be out for longer; its record does not say until when.
    """
    return first.open or sent_at < first.entered_at - CLOCKS_APART_SECONDS


def _rounds(incidents: Sequence[Incident]) -> Iterator[Break]:
    """An instance has one incident at a time, and none after it is gone."""
    by_instance: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_instance.setdefault(incident.instance_id, []).append(incident)
    for rounds in by_instance.values():
        for before, after in pairwise(sorted(rounds, key=lambda i: round_of(i.id))):
            at = after.opened_at
            if before.state in _GONE:
                sentence = f"It is opened after incident {before.id} ended {before.state}."
                yield _break(after, at, "rounds", sentence)
            elif before.state not in TERMINAL or at < before.entered_at - CLOCKS_APART_SECONDS:
                yield _break(after, at, "rounds", f"It is opened while {before.id} is open.")


def _entered_at(incident: Incident, state: State) -> float | None:
    return next((t.at for t in incident.transitions if t.state is state), None)


_RULES: Sequence[Callable[[Incident], Iterator[Break]]] = (_steps, _drain_breaks, _silent_keeps)
RULES = ("steps", "order", "turn", "replacement", "paged", "gate", "one out", "rounds")


PACE = Pace(seconds=2.0)
MOST_SHOWN = 10


def show_all(
    environment: str,
    console: Console,
    *,
    closed: bool,
    watch: bool,
    as_json: bool,
    pace: Pace = PACE,
) -> None:
    """Print the incidents: once, as JSON lines, or again and again until Ctrl-C."""
    with readable_ledger():
        cluster = Cluster.named(environment)
        if as_json:
            for incident in cluster.incidents(closed=closed):
                _say_json(incident, console)
            return

        def look(now: float) -> Page[None]:
            found = table(cluster.incidents(closed=closed), now)
            pause = cluster.pauses.current(now)
            # First of all: it is why nothing moves.
            return (Group(Text(pause.sentence, "bold"), found) if pause else found), None

        if watch:
            watching.watch(console, look, pace)
        else:
            page, _ = look(time.time())
            console.print(page)


def _say_json(incident: Incident, console: Console) -> None:
    said = json.dumps(_plain(incident), sort_keys=True)
    say(console, said)


def show_one(environment: str, named: str, console: Console, *, as_json: bool = False) -> None:
    """Print one incident: what it is about, and everything that happened, in order."""
    with readable_ledger():
        cluster = Cluster.named(environment)
        incident = cluster.latest(named)
    if as_json:
        _say_json(incident, console)
        return
    console.print(timeline(incident, float(cluster.spec.timings.hold_limit_seconds)))


def hold_instance(cluster: Cluster, instance: str, until: str) -> str:
    """Keep an instance until a moment; return what was noted."""
    now = time.time()
    moment = moment_of(until, now)
    return _wish(cluster, instance, lambda i, actor: hold(i, moment, actor, now))


def release_instance(cluster: Cluster, instance: str) -> str:
    """Let an instance go without a replacement and without Kafka's consent; still drained first."""
    return _wish(cluster, instance, lambda i, actor: ask_release(i, actor, time.time()))


def ignore_incident(cluster: Cluster, named: str, because: str) -> str:
    """End an incident without doing anything; return what was noted."""
    return _wish(cluster, named, lambda i, actor: ignore(i, actor, because, time.time()))


def _wish(cluster: Cluster, named: str, change: Callable[[Incident, str], Incident]) -> str:
    with readable_ledger():
        actor = cluster.actor
        written = cluster.wish(named, lambda incident: change(incident, actor))
    said = written.notes[-1] if written.notes else written.transitions[-1]
    return f"{said.reason} The loop looks at incident {written.id} now."


def table(incidents: Sequence[Incident], now: float) -> Table:
    """Return one row per incident, the oldest first."""
    found = Table(
        "", "incident", "what", "state", "for", "why", caption=None if incidents else "No incident."
    )
    for incident in incidents:
        since = span(now - incident.entered_at)
        found.add_row(
            symbol(incident.state),
            Text(incident.id),
            Text(subject(incident)),
            incident.state.value,
            since if incident.open else f"{since} ago",
            Text(incident.reason),
        )
    return found


def timeline(incident: Incident, hold_limit: float) -> Group:
    """Return an incident's whole history, with what comes next or how long it took."""
    head = Text(f"{symbol(incident.state)} {subject(incident)}: {incident.state.value}", "bold")
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(incident).items():
        if value:
            facts.add_row(Text(name, "dim"), Text(value))
    history = Table("time (UTC)", "after", "who", "state", "what")
    for entry in entries(incident):
        history.add_row(
            time_said(entry.at).removesuffix(" UTC"),
            span(entry.at - incident.opened_at),
            Text(entry.actor),
            entry.state.value,
            Text(entry.reason),
        )
    after = [outlook(incident, hold_limit)] if incident.open else durations(incident)
    return Group(head, facts, history, *(Text(line) for line in after if line))


def entries(incident: Incident) -> list[Transition]:
    """Return transitions and notes in the order they happened."""
    return sorted((*incident.transitions, *incident.notes), key=lambda entry: entry.at)


def _facts(incident: Incident) -> dict[str, str | None]:
    due = None if incident.due_at is None else time_said(incident.due_at)
    return {
        "incident": incident.id,
        "announced": incident.kind.value,
        "instance": incident.instance_id,
        "group": incident.group,
        "node": incident.node_name,
        "pod": incident.pod_name,
        "replacement": incident.replacement_node,
        "AWS acts": due,
    }


def _plain(incident: Incident) -> dict[str, Any]:
    """Return an incident without the tokens that complete its hooks and what AWS sent."""
    document = flat(incident) | {"hooks": sorted(incident.hooks)}
    del document["drain_event"]
    return document


def pause(cluster: Cluster, because: str, until: str | None) -> str:
    """Have nothing new drained or terminated until a moment, or until somebody resumes."""
    now = time.time()
    moment = None if until is None else moment_of(until, now)
    problems = []
    if not because.strip():
        problems.append("--because is empty; say why, for people who find the cluster paused.")
    if moment is not None and moment <= now:
        problems.append(f"A pause cannot end at {clock(moment)}: it is {clock(now)}.")
    if problems:
        raise InvalidInput(problems)
    with readable_ledger():
        pauses = cluster.pauses
        before = pauses.current(now)
        pause = Pause(cluster.actor, because.strip(), now, moment)
        pauses.write(pause if before is None else replace(pause, since=before.since))
    return (
        f"{pause.sentence} Nothing new is drained or terminated; hooks keep beating, drains that "
        "run end, and a two-minute warning is drained anyway."
    )


def resume(cluster: Cluster) -> str:
    """Let the loop go on, and have it look at every open incident now."""
    with readable_ledger():
        pauses = cluster.pauses
        before = pauses.current(time.time())
        pauses.write(None)
        woken = cluster.ledger.open_incidents()
        for incident in woken:
            cluster.send_tick(tick_message(incident.id, incident.version))
    if before is None:
        return f"{cluster.spec.name} was not paused."
    return (
        f"{cluster.spec.name} goes on; it was: {before.sentence} The loop looks at {len(woken)} "
        f"open incidents now."
    )


def verify(named: str, console: Console, *, as_json: bool = False) -> None:
    """Judge an environment's ledger, or archived lines; StillwaterError when a rule is broken.

    `named` is an environment, a file of the archive, or a folder of such files; what has neither a
    slash nor a dot is an environment, whatever folder is called like it.
    """
    place = Path(named)
    if "/" in named or "." in named:
        clusters = read(place)
        found = [b for histories in clusters.values() for b in breaks(histories)]
        count = sum(len(histories) for histories in clusters.values())
    else:
        cluster = Cluster.named(named)
        with readable_ledger():
            incidents = cluster.incidents(closed=True)
        found, count = breaks(incidents, gate=cluster.spec.gate), len(incidents)
    if found:
        raise StillwaterError(_report_text(sorted(found), count))
    if as_json:
        terminal.write({"incidents": count, "rules": list(RULES)})
        return
    console.print(f"{count} incidents keep all {len(RULES)} rules: {', '.join(RULES)}.")


def _report_text(found: Sequence[Break], count: int) -> str:
    more = len(found) - MOST_SHOWN
    lines = [f"The first step that breaks a rule, in {count} incidents:", str(found[0])]
    lines.extend(f"then {each}" for each in found[1:MOST_SHOWN])
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def read(place: Path) -> dict[str, list[Incident]]:
    """Return the incidents of archived lines by cluster; InvalidInput for what is none."""
    found: dict[str, list[Incident]] = {}
    problems: list[str] = []
    for path in sorted(place.rglob("*.jsonl")) if place.is_dir() else [place]:
        for number, line in _lines(path):
            try:
                cluster = str(json.loads(line).get("cluster", ""))
                found.setdefault(cluster, []).append(from_json(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                problems.append(
                    f"{path}, line {number}, is not an archived incident ({type(error).__name__}: "
                    f"{one_line(error)}); give a file of the archive's incidents/."
                )
    if problems:
        raise InvalidInput(problems[:MOST_SHOWN])
    if not found:
        raise InvalidInput([f"{place} holds no archived incidents: no line of any .jsonl file."])
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            [passed_on(f"{path} cannot be read; name another file.", error)]
        ) from None
    return ((n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip())
