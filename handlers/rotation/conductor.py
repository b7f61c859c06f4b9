"""Carries out what a person asks of rotations, and leaves the rest to the loop.

λ tick takes the run's turns (handlers.rotation.turns). The answer is `{"said": ...}` with the run
or the plan, or `{"problems": [...]}` where a person has to do something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.availability.budget import HOUR, WINDOWS
from core.availability.operator import OperatorView
from core.ground.constants import RELEASE
from core.ground.errors import Conflict, InvalidInput, StillwaterError
from core.incidents.observation import Ownership, Policy
from core.rotation.estimate import RunObservation, measured_rate
from core.rotation.parallel import refusals
from core.rotation.plan import (
    Plan,
    Selection,
    choose_way,
    plan,
    plan_to_document,
    stale_template,
    turns_of,
    unjudged_nodes,
    why_outdated,
)
from core.rotation.preconditions import drifted_nodes, unkeepable
from core.rotation.run_record import (
    DEFAULT_DEADLINE_SECONDS,
    NodeTurn,
    Options,
    Run,
    abort,
    open_run,
    pause,
    resume,
    run_to_document,
)
from handlers.adapters.aws import Queue
from handlers.adapters.templates import AwsTemplates
from handlers.incidents.act import ErrorSnapshots
from handlers.incidents.observe import Sources
from handlers.rotation.turns import ClientsBudget, add_errors, observe_cluster
from handlers.store.documents import Runs
from handlers.store.ledger import rotation_message
from handlers.store.table import retry_on_newer

NOTHING = "Nothing is outdated: there is nothing to rotate."
NOTHING_KNOWN = (
    "No node is known to be outdated, and some nodes are unknown: name them by hand to rotate them."
)


@dataclass(frozen=True, slots=True)
class _Planned:
    turns: tuple[NodeTurn, ...]
    options: Options
    plan: Plan
    apart: tuple[str, ...]  # why nodes may not go several at a time, as was asked for
    unjudged: tuple[str, ...]  # of which nodes nobody can tell whether they are outdated, and why
    versions: Mapping[str, str | None]  # what runs now, by core.fleet's words

    @property
    def said(self) -> str:
        """Say how many nodes would be rotated; of none, whether that is good news."""
        if self.turns:
            return _told_of(self.turns)
        return NOTHING_KNOWN if self.unjudged else NOTHING


@dataclass(frozen=True)
class Conductor:
    """Takes a person's word on rotations."""

    runs: Runs
    sources: Sources
    templates: AwsTemplates
    snapshots: ErrorSnapshots
    ticks: Queue
    policy: Policy
    whose: Ownership
    # None: nobody counts what clients fail at.
    budget: ClientsBudget | None = None

    def take(self, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Carry out one command; what a person must hear of comes back as sentences."""
        try:
            return self._carry_out(str(event.get("command")), event, now)
        except InvalidInput as error:
            return {"problems": list(error.problems)}
        except (Conflict, StillwaterError) as error:
            return {"problems": [str(error)]}

    def _carry_out(self, command: str, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        wishes: Mapping[str, Callable[[Run, str, float], Run]] = {
            "pause": pause,
            "resume": lambda run, actor, now: self._resume(run, actor, now, event),
            "abort": abort,
        }
        if command in wishes:
            return self._wish(event, now, wishes[command])
        answers: Mapping[str, Callable[[], dict[str, Any]]] = {
            "held": lambda: self._log_sizes(now),
            "plan": lambda: self._plan(event, now),
            "start": lambda: self._start(event, now),
            "status": lambda: self._reply(self._current()),
        }
        if command not in answers:
            raise InvalidInput([f"{command!r} is none of {', '.join([*answers, *wishes])}."])
        return answers[command]()

    def _start(self, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        planned = self._plan_of(event, now)
        if not planned.turns:
            return {"said": planned.said, "plan": plan_to_document(planned.plan)}
        if planned.plan.topics and not event.get("accept_unavailable"):
            remedy = "Start with --accept-unavailable to rotate anyway."
            raise InvalidInput([*planned.plan.unavailable, remedy])
        problems = (*planned.apart, *planned.plan.too_long)
        if problems:
            raise InvalidInput(problems)
        takes = {node.node_id: node.alone_seconds for node in planned.plan.nodes}
        run = open_run(
            (replace(turn, expected_seconds=takes[turn.node_id]) for turn in planned.turns),
            planned.options,
            _actor(event),
            now,
            replication=measured_rate(self.runs.current()),
        )
        written = self.runs.replace_by(run)
        self._wake(written)
        return self._reply(written)

    def _plan(self, event: Mapping[str, Any], now: float) -> dict[str, Any]:
        planned = self._plan_of(event, now)
        return {
            "said": planned.said,
            "plan": plan_to_document(planned.plan),
            "unjudged": list(planned.unjudged),
            "versions": dict(planned.versions),
            "spent": self._spent(now),
        }

    def _spent(self, now: float) -> dict[str, Any] | None:
        """Return what clients failed at since the last run began, for an hour to three days."""
        if self.budget is None:
            return None
        run = self.runs.current()
        began = now - HOUR if run is None else min(run.started_at, now - HOUR)
        longest = WINDOWS[-1].long_seconds
        return asdict(self.budget.spending(max(began, now - longest), now))

    def _plan_of(self, event: Mapping[str, Any], now: float) -> _Planned:
        """Read everything a plan rests on; raises StillwaterError when it cannot be read."""
        seen = observe_cluster(self.sources, self.whose, now)
        seen = seen if seen.blind else add_errors(self.snapshots, seen)
        if seen.blind:
            raise StillwaterError(seen.blind)
        server = self.sources.nodes.server_version()
        launched = self.templates.launched_instances(self.whose)
        outdated = {
            pod.node_id: why
            for pod in seen.pods
            if (node := seen.node_of(pod.node_id)) is not None
            and (found := launched.get(node.instance_id or "")) is not None
            and (why := why_outdated(found, node.kubelet, server))
        }
        selection = _selection(event)
        turns = turns_of(seen, selection, drifted_nodes(seen) | outdated)
        unjudged = () if selection.is_explicit else tuple(unjudged_nodes(seen, launched))
        accepted = _topics(turns, seen) if event.get("accept_unavailable") else ()
        known = seen.errors if event.get("acknowledge_errors") else None
        options = Options(
            accepted_topics=accepted,
            acknowledged=None if known is None else known.to_dict(),
            deadline_seconds=_number(
                "deadline_seconds", event.get("deadline_seconds") or DEFAULT_DEADLINE_SECONDS
            ),
            at_once=_parse_at_once(event),
            any_time=bool(event.get("any_time")),
            even_recovering=bool(event.get("even_recovering")),
            in_place=bool(event.get("in_place")),
        )
        if options.in_place:
            turns = tuple(choose_way(t, launched.get(t.instance_id), seen) for t in turns)
        kubelets = {n.instance_id: n.kubelet for n in seen.nodes if n.instance_id in launched}
        apart = tuple(refusals(options, self.policy))
        planned = plan(
            turns,
            seen,
            options,
            self.policy,
            earlier=self.runs.current(),
            appended=self._append_rates(event, now),
            notes=(
                *apart,
                *unjudged,
                *stale_template(launched, {str(i): k for i, k in kubelets.items()}, server),
            ),
        )
        running = {each.present.image_id for each in launched.values()}
        versions = {
            "eks": server,
            "image": ", ".join(sorted(filter(None, running))) or None,
            **_operator_versions(seen),
            "stillwater": RELEASE,
        }
        return _Planned(turns, options, planned, apart, unjudged, versions)

    def _resume(self, run: Run, actor: str, now: float, event: Mapping[str, Any]) -> Run:
        """Resume with what the person has seen since, or wants otherwise; refuse as `start` does.

        A repetition after a Conflict asks again, of the run as it then is.
        """
        options = run.options
        if event.get("acknowledge_errors"):
            known = self.snapshots.ask(now).errors.to_dict()
            options = replace(options, acknowledged=known)
        if event.get("accept_unavailable"):
            seen = observe_cluster(self.sources, self.whose, now)
            options = replace(options, accepted_topics=_topics(run.turns, seen))
        if event.get("any_time"):
            options = replace(options, any_time=True)
        if event.get("even_recovering"):
            options = replace(options, even_recovering=True)
        if event.get("at_once") is not None:
            options = replace(options, at_once=_parse_at_once(event))
            if problems := list(refusals(options, self.policy)):
                raise InvalidInput(problems)
        return resume(run, actor, now, skip=bool(event.get("skip")), options=options)

    def _append_rates(self, event: Mapping[str, Any], now: float) -> dict[int, float]:
        """Return what brokers take in a second, from how their logs grew since the first look."""
        before = event.get("held")
        if before is None:
            return {}
        sizes = before.get("bytes") if isinstance(before, dict) else None
        if not isinstance(sizes, dict):
            raise InvalidInput([f"held is {before!r}, and must be what `held` answered before."])
        seconds = now - _number("held.at", before.get("at"))
        if seconds <= 0:
            raise InvalidInput([f"held.at is {before['at']!r}, and must be in the past."])
        grown = {
            broker: max(held - _number("held.bytes", sizes.get(str(broker), held)), 0.0)
            for broker, held in self.sources.kafka.log_bytes().items()
        }
        return {broker: bytes_ / seconds for broker, bytes_ in grown.items()}

    def _log_sizes(self, now: float) -> dict[str, Any]:
        held = {str(broker): size for broker, size in self.sources.kafka.log_bytes().items()}
        return {"said": "What brokers hold.", "held": {"at": now, "bytes": held}}

    def _reply(self, run: Run) -> dict[str, Any]:
        return {"said": run.reason, "run": run_to_document(run)}

    def _wish(
        self, event: Mapping[str, Any], now: float, change: Callable[[Run, str, float], Run]
    ) -> dict[str, Any]:
        """Write what a person wants over the newest version, and have the loop look at once."""
        written = retry_on_newer(lambda: self.runs.put(change(self._current(), _actor(event), now)))
        self._wake(written)
        return self._reply(written)

    def _current(self) -> Run:
        run = self.runs.current()
        if run is None:
            raise StillwaterError(
                "No rotation was ever started here; `stillwater rotate start` starts one."
            )
        return run

    def _wake(self, run: Run) -> None:
        self.ticks.send(rotation_message(run.version))


def _operator_versions(seen: RunObservation) -> dict[str, str | None]:
    """Return the operator's version and Kafka's; None where they could not be read."""
    known = seen.operator if isinstance(seen.operator, OperatorView) else None
    return {
        "strimzi": None if known is None else known.strimzi_version,
        "kafka": None if known is None else known.kafka_version,
    }


def _told_of(turns: Iterable[NodeTurn]) -> str:
    """Say how many nodes get a new instance, and how many keep theirs."""
    listed_ = tuple(turns)
    stay = sum(turn.image_id is not None for turn in listed_)
    if not stay:
        return f"{len(listed_)} nodes would get a new instance."
    return (
        f"{stay} of {len(listed_)} nodes would keep their instance and get a new root volume, the "
        f"others a new instance."
    )


def _actor(event: Mapping[str, Any]) -> str:
    return str(event.get("actor") or "somebody")


def _parse_at_once(event: Mapping[str, Any]) -> int | None:
    """Return how many brokers of a zone go together, None for all that may.

    Raises InvalidInput for anything but a whole number from 1 and "zone".
    """
    asked = event.get("at_once", 1)
    if asked == "zone":
        return None
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        raise InvalidInput([f"at_once is {asked!r}, and must be a whole number from 1, or zone."])
    return asked


def _selection(event: Mapping[str, Any]) -> Selection:
    """Return what was named; raise InvalidInput for what names nobody."""
    named, keys = event.get("selection") or {}, ("node_ids", "pools", "zones")
    lists = [named.get(key) or [] for key in keys] if isinstance(named, dict) else []
    if len(lists) < len(keys) or not all(isinstance(each, list | tuple) for each in lists):
        raise InvalidInput([f"selection is {named!r}, and must be lists of {', '.join(keys)}."])
    node_ids, pools, zones = lists
    return Selection(
        everything=bool(named.get("everything")),
        node_ids=tuple(int(_number("selection.node_ids", each)) for each in node_ids),
        pools=tuple(map(str, pools)),
        zones=tuple(map(str, zones)),
    )


def _number(name: str, value: object) -> float:
    """Return a number; raise InvalidInput for what is none."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise InvalidInput([f"{name} is {value!r}, and must be a number."])
    return found


def _topics(turns: Iterable[NodeTurn], seen: RunObservation) -> tuple[str, ...]:
    """Return the topics of which something is unavailable while a node is away."""
    if seen.kafka is None:
        return ()
    kafka = seen.kafka
    return tuple(sorted({p.topic for turn in turns for p in unkeepable(turn.node_id, kafka)}))
