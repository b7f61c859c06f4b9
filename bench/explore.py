"""Walks the shipped functions, looks for broken rules, and breaks them to see them noticed.

    python -m bench.explore [--minutes 60] [--workers N] [--again] [--mutants-only]

The explorer (tests/explorer, ADR 0018) in parallel processes: every single fault of every scenario,
then every two faults of two leavers share by share, with walks from seeds in between, until time is
up. Then every mutant: by the unit tests of decisions, and where they see nothing by the explorer
(tests.explorer.judge). What a unit of work has found is kept under out/bench/explore/, and a later
run goes on from there (`--again` forgets it). Ends with 1 when a rule was broken or a mutant lived.
Writes out/bench/explore.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import record

WORK = Path("out/bench/explore")
PARTS, WALKS = 1024, 400
MOST_UNIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of the exploration that one process does at once."""

    kind: str  # faults, or walks
    scenario: int
    budget: int
    part: int
    parts: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.scenario}-{self.budget}-{self.part}"


def units(scenarios: int) -> Iterator[Unit]:
    """Yield the work in its order: what is bounded first, then two faults and walks in turn."""
    yield from (Unit("faults", number, 1, 0, 1) for number in range(scenarios))
    for part in range(PARTS):
        yield Unit("faults", 1, 2, part, PARTS)
        yield Unit("walks", part % scenarios, 0, part, PARTS)
    yield from (Unit("walks", part % scenarios, 0, part, PARTS) for part in itertools.count(PARTS))


def explore(unit: Unit, deadline: float) -> dict[str, Any]:
    """Do one unit of work before a time (of time.time); return what a row of the bench says."""
    from tests.explorer.scenarios import SCENARIOS  # noqa: PLC0415 - in the worker alone
    from tests.explorer.search import Exhaustion, Tally, random_walk, shrink  # noqa: PLC0415
    from tests.explorer.stage import explored  # noqa: PLC0415
    from tests.explorer.story import told  # noqa: PLC0415

    tally, scenario = Tally(), SCENARIOS[unit.scenario]
    seconds = min(deadline - time.time(), MOST_UNIT_SECONDS)
    began, until, done = time.process_time(), time.monotonic() + seconds, True
    with explored() as stage:
        if unit.kind == "faults":
            share = (unit.part, unit.parts)
            search = Exhaustion(stage, scenario, tally, budget=unit.budget, share=share)
            done = search.run(until)
        else:
            for seed in range(unit.part * WALKS, (unit.part + 1) * WALKS):
                random_walk(stage, scenario, seed, tally, odds=(0.02, 0.05, 0.1)[seed % 3])
                if time.monotonic() > until:
                    done = False
                    break
        stories = [told(stage, shrink(stage, found)) for found in tally.found.values()]
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / f"{unit.name}.states").open("wb") as file:
        array("q", tally.states).tofile(file)
    row = {
        **asdict(unit),
        "scenario": scenario.name,
        "done": done,
        "cut_short": not done and seconds < MOST_UNIT_SECONDS,
        "states": len(tally.states),
        "steps": tally.steps,
        "worlds": tally.worlds,
        "cpu_s": round(time.process_time() - began, 1),
        "simulated_hours": round(tally.simulated_seconds / 3600, 1),
        "coverage": [[*key, count] for key, count in sorted(tally.coverage.items())],
        "violations": sorted(stories),
    }
    (WORK / f"{unit.name}.json").write_text(json.dumps(row))
    return row


def main(arguments: Sequence[str]) -> None:
    """Explore, judge the mutants, write down; end with 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="bench.explore", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of exploring, mutants apart")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--mutants-only", action="store_true")
    given = parser.parse_args(arguments)
    # States are told apart by a hash that every process must make alike.
    os.environ["PYTHONHASHSEED"] = "0"
    if given.again:
        shutil.rmtree(WORK, ignore_errors=True)
    began = time.time()
    if not given.mutants_only:
        _explore_all(began + 60 * given.minutes, given.workers)
    exploring = time.time() - began
    rows = [json.loads(path.read_text()) for path in sorted(WORK.glob("*.json"))]
    mutants = judge_mutants(given.workers)
    figures = summary(rows, mutants)
    parameters = {
        "minutes": given.minutes,
        "workers": given.workers,
        "this_run_s": round(exploring),
        "coverage": coverage(rows),
    }
    kept = [{k: v for k, v in row.items() if k != "coverage"} for row in rows]
    record.write("explore", parameters, [*kept, *mutants], figures)
    for story in (story for row in rows for story in row["violations"]):
        print(f"\n{story}")
    alive = [row["mutant"] for row in mutants if not row["killed_by"]]
    if figures["violations"] or alive:
        sys.exit(f"{figures['violations']} violations; mutants that live: {alive}")


def _explore_all(deadline: float, workers: int) -> None:
    from tests.explorer.scenarios import SCENARIOS  # noqa: PLC0415 - names alone

    work = (unit for unit in units(len(SCENARIOS)) if not _is_finished(unit))
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawned) as pool:
        running: set[Future[dict[str, Any]]] = set()
        while time.time() < deadline - 1 or running:
            while len(running) < workers and time.time() < deadline - 1:
                running.add(pool.submit(explore, next(work), deadline))
            for ended in as_completed(running):
                row = ended.result()
                told = {k: row[k] for k in ("kind", "scenario", "part", "states", "steps", "done")}
                print(told, [story.splitlines()[0] for story in row["violations"]], flush=True)
                running.discard(ended)
                break


def _is_finished(unit: Unit) -> bool:
    """Say whether an earlier run did a unit, and did not stop in it because its time was up."""
    path = WORK / f"{unit.name}.json"
    return path.exists() and not json.loads(path.read_text())["cut_short"]


def judge_mutants(workers: int) -> list[dict[str, Any]]:
    """Return a row for every mutant: who killed it, and by what; one that was killed stays so."""
    from tests.explorer.mutants import MUTANTS  # noqa: PLC0415 - names alone

    kept = {mutant.name: _record_path(mutant.name) for mutant in MUTANTS}
    known = {name: json.loads(path.read_text()) for name, path in kept.items() if path.exists()}
    # A process each, in which nothing of ours was read before; what they share is read once.
    fresh = multiprocessing.get_context("forkserver")
    fresh.set_forkserver_preload(["pytest", "hypothesis", "boto3", "pydantic"])
    with fresh.Pool(workers, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(_judge, [name for name in kept if name not in known]):
            print(row, flush=True)
            known[row["mutant"]] = row
            if row["killed_by"]:
                kept[row["mutant"]].write_text(json.dumps(row))
    return [known[name] for name in kept]


def _record_path(name: str) -> Path:
    WORK.mkdir(parents=True, exist_ok=True)
    return WORK / f"{name.replace(' ', '_').replace(':', '')}.mutant"


def _judge(name: str) -> dict[str, Any]:
    from tests.explorer.judge import judged  # noqa: PLC0415 - in the worker alone

    return {**judged(name)}


def coverage(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how often each fault met each state of an incident, and each actor."""
    by_state: Counter[str] = Counter()
    by_actor: Counter[str] = Counter()
    for row in rows:
        for state, fault, actor, count in row["coverage"]:
            by_state[f"{state} x {fault}"] += count
            by_actor[f"{actor} x {fault}"] += count
    cells = {tuple(cell[:3]) for row in rows for cell in row["coverage"]}
    return {"cells": len(cells), "state": dict(by_state), "actor": dict(by_actor)}


def summary(
    rows: Sequence[Mapping[str, Any]], mutants: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the bench's figures; a state that two units have met counts once."""
    states: set[int] = set()
    for path in WORK.glob("*.states"):
        found = array("q")
        found.frombytes(path.read_bytes())
        states.update(found)
    cpu = sum(row["cpu_s"] for row in rows)
    return {
        "states": len(states),
        "states_per_s": round(len(states) / cpu) if cpu else 0,
        "worlds": sum(row["worlds"] for row in rows),
        "violations": sum(len(row["violations"]) for row in rows),
        "mutants": len(mutants),
        "mutants_killed": sum(bool(row["killed_by"]) for row in mutants),
        "simulated_hours": round(sum(row["simulated_hours"] for row in rows)),
        "steps_per_s": round(sum(row["steps"] for row in rows) / cpu) if cpu else 0,
        "cpu_s": round(cpu),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
