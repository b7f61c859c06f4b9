"""Takes a turn of a rotation run: observe -> core.rotation decides -> act -> record -> next turn.

λ tick takes turns on messages that name the run's version; λ sweep sends one where none comes. A
turn is claimed by a write before anything is done, and what it does may be repeated; a node is
begun with once that is written. Replication is throttled by one document of the ledger's table,
written before Kafka is and emptied after it, so that the sweep finds a throttle left behind. The
probe's counts come from Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from aws_lambda_powertools import Logger

from core.availability.budget import Spent
from core.events import Interruption, Kind
from core.ground.errors import Conflict, StillwaterError
from core.ground.window import clock
from core.incidents.actions import Page
from core.incidents.observation import Ownership, Policy
from core.incidents.planned import is_planned
from core.incidents.record import Incident
from core.rotation.estimate import RunObservation, measured_now
from core.rotation.progress import counting_since, next_step
from core.rotation.run_record import (
    ACTOR,
    Begin,
    CallOff,
    Elect,
    MakeReady,
    NodeTurn,
    Run,
    RunAction,
    RunState,
    RunStep,
    Throttle,
    ThrottleRefill,
    is_unattended,
    note_run,
)
from core.settings.prometheus import ATTEMPTS, FAILED, ProbeBudget, parse_prometheus_address
from handlers.adapters.aws import Queue
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.eks import EksApi
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.pages import call
from handlers.adapters.prometheus import Prometheus, route
from handlers.incidents.act import ErrorSnapshots
from handlers.incidents.loop import FAILING_SECONDS
from handlers.incidents.observe import Sources, read_operator
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import INCIDENT_CAUSE, Leadership
from handlers.store.documents import Runs, is_left_throttled, throttle_key
from handlers.store.ledger import rotation_message, rounds
from handlers.store.table import Records

# An increase needs several scrapes, which come a minute apart at most.
LEAST_SECONDS = 300.0


@dataclass(frozen=True)
class ClientsBudget:
    """The budget of one cluster's clients."""

    prometheus: Prometheus
    settings: ProbeBudget
    namespace: str
    cluster: str

    @classmethod
    def connect(
        cls, settings: ProbeBudget, namespace: str, cluster: str, api: EksApi
    ) -> ClientsBudget:
        address = parse_prometheus_address(settings.address)
        return cls(Prometheus(route(address, api)), settings, namespace, cluster)

    def spending(self, since: float, now: float) -> Spent:
        """Return what failed since then; what cannot be read is a sentence, and raises nothing."""
        seconds = max(LEAST_SECONDS, now - since)
        found = Spent(
            objective_percent=self.settings.objective_percent,
            allowed_percent=self.settings.rotation_percent,
            seconds=seconds,
        )
        try:
            attempts = self._increase(ATTEMPTS, seconds, now)
            failed = self._increase(FAILED, seconds, now)
        except StillwaterError as error:
            return replace(found, silence=str(error))
        if not attempts or failed is None:
            said = f"Prometheus knows of no attempt of the probe within {seconds:.0f} s."
            return replace(found, silence=said)
        return replace(found, attempts=attempts, failed=failed)

    def _increase(self, metric: str, seconds: float, now: float) -> float | None:
        labels = {"namespace": self.namespace, "cluster": self.cluster, **self.settings.labels}
        selected = ",".join(f'{name}="{value}"' for name, value in labels.items())
        query = f"sum(increase({metric}{{{selected}}}[{seconds:.0f}s]))"
        series = self.prometheus.instant(query, now)
        return next((value for each in series for value in each.points.values()), None)


@dataclass(frozen=True)
class Throttles:
    """The replication throttle of one cluster."""

    kafka: KafkaAdmin
    records: Records
    cluster: str

    def settle(self, run_id: str, throttle: Throttle | None) -> None:
        """Have replication throttled as a run wants it; None: not at all.

        Raises StillwaterError where Kafka refuses or somebody else throttles the same already,
        Conflict when another invocation is at it.
        """
        record = self.records.read(throttle_key(self.cluster))
        before: list[str] = record.document["topics"] if record.document else []
        if throttle is None:
            if record.document:
                self.kafka.unthrottle(before)
                self.records.write(throttle_key(self.cluster), {}, record.version)
            return
        # Before anything is written: what is taken off later must be what was put on.
        others = self.kafka.throttled_by_others(throttle, before)
        if others:
            raise StillwaterError(others)
        topics = sorted({*before, *throttle.topics})
        written = {**(record.document or {}), "run": run_id, "topics": topics}
        self.records.write(throttle_key(self.cluster), written, record.version)
        self.kafka.throttle(throttle)

    def tidy(self, run: Run | None) -> None:
        """Take off what was left on; raises as `settle` does."""
        if is_left_throttled(self.records, self.cluster, run):
            self.settle("", None)


logger = Logger(service="stillwater", child=True)
ACTION_FAILS = "action_fails"


@dataclass(frozen=True)
class Rotations:
    """Carries the cluster's run, if there is one."""

    runs: Runs
    sources: Sources
    reception: Reception
    snapshots: ErrorSnapshots
    ticks: Queue
    policy: Policy
    late_seconds: float
    told: Callable[[Run], None]
    throttles: Throttles
    leadership: Leadership
    # None: nobody counts what clients fail at.
    budget: ClientsBudget | None = None

    def turn(self, version: int, now: float) -> None:
        """Take one step with the run, and schedule the next."""
        claimed = self._claim(version, now)
        if claimed is None:
            return
        seen = observe_run(claimed, self.sources, self.reception.whose, now)
        seen = self._add_errors(claimed, self._add_log_sizes(claimed, seen))
        seen = self._add_leaders_owed(claimed, seen)
        if self.budget is not None and not seen.blind and not claimed.open_turns:
            seen = replace(seen, spent=self.budget.spending(counting_since(claimed), now))
        step = self._settle_throttle(next_step(claimed, seen, self.policy), now)
        logger.info(step.run.reason, run=claimed.id, state=step.run.state.value)
        begins = [each for each in step.actions if isinstance(each, Begin)]
        others = [each for each in step.actions if each not in begins]
        written: Run | None = claimed
        try:
            # A call comes last: what fails after it would have it repeated.
            for action in sorted(others, key=lambda each: isinstance(each, Page)):
                self._do(step.run, action, now)
            pages = tuple(key for key in step.run.pages if key != ACTION_FAILS)
            done = replace(step.run, failing_since=None, pages=pages)
            written = self._record(step.run if begins else done, step.delay_seconds, now)
            # Whoever paused or aborted the run meanwhile is heard before a node is begun with.
            for action in begins if written else ():
                self._do(step.run, action, now)
        except (StillwaterError, *NO_ANSWER) as error:
            # Decided again: what was done of it is harmless to repeat.
            logger.warning("A run's action failed.", run=claimed.id, error=str(error))
            self._note_failure(written or claimed, step, error, now)

    def tidy(self) -> None:
        """Take a throttle off that was left on; raises StillwaterError where Kafka refuses."""
        self.throttles.tidy(self.runs.current())

    def _settle_throttle(self, step: RunStep, now: float) -> RunStep:
        """Carry out what a step does about the throttle; a run goes on where Kafka refuses it."""
        wanted = [each for each in step.actions if isinstance(each, ThrottleRefill)]
        others = tuple(each for each in step.actions if not isinstance(each, ThrottleRefill))
        run = step.run
        for each in wanted:
            try:
                self.throttles.settle(run.id, each.throttle)
            except StillwaterError as error:
                # What was set of it is taken off by the sweep.
                said = f"The refill is not throttled: {error}"
                run = note_run(run, ACTOR, said, now)
        return replace(step, run=run, actions=others)

    def _add_errors(self, run: Run, seen: RunObservation) -> RunObservation:
        """Ask the exporters where the answer decides: before somebody goes."""
        if run.open_turns or not run.waiting or seen.blind:
            return seen
        return add_errors(self.snapshots, seen)

    def _add_leaders_owed(self, run: Run, seen: RunObservation) -> RunObservation:
        """Ask who is to lead again where the answer decides: before several go together."""
        if run.open_turns or run.options.at_once == 1 or seen.blind:
            return seen
        opened = {f"{INCIDENT_CAUSE}{i.id}" for i in (*seen.others, *seen.ahead.values())}
        try:
            owed = self.leadership.brokers_owed(
                lambda cause: cause in opened or not cause.startswith(INCIDENT_CAUSE)
            )
        except (StillwaterError, *NO_ANSWER) as error:
            return _blind(error, seen.now)
        return replace(seen, leaders_owed=owed)

    def _add_log_sizes(self, run: Run, seen: RunObservation) -> RunObservation:
        """Ask what brokers hold before they leave, and while they catch up: that is measured."""
        behind = measured_now(run, seen.kafka)
        if seen.blind or not behind:
            return seen
        try:
            held = self.sources.kafka.log_bytes(behind)
        except StillwaterError:
            return seen  # A measurement less.
        return replace(seen, held={id_: held[id_] for id_ in behind if id_ in held})

    def _claim(self, version: int, now: float) -> Run | None:
        run = self.runs.current()
        if run is None or run.state is not RunState.RUNNING:
            if run is not None:
                self.told(run)
            return None
        if run.version != version and not is_unattended(run, now, self.late_seconds):
            return None
        try:
            return self.runs.put(replace(run, turned_at=now))
        except Conflict:
            return None

    def _note_failure(self, claimed: Run, step: RunStep, error: Exception, now: float) -> None:
        """Remember since when no turn can act, and call a person once that has lasted."""
        since = claimed.failing_since or now
        noted_ = replace(claimed, failing_since=since)
        if now - since > FAILING_SECONDS and ACTION_FAILS not in claimed.pages:
            said = f"Nothing can be done for run {claimed.id} since {clock(since)}: {error}"
            call(self.ticks, f"{said} ({step.run.reason})", page=ACTION_FAILS, run=claimed.id)
            noted_ = replace(noted_, pages=(*claimed.pages, ACTION_FAILS))
        try:
            written = claimed if noted_ == claimed else self.runs.put(noted_)
        except (Conflict, *NO_ANSWER):
            written = claimed  # The sweep finds it, should its version have changed.
        self._schedule(written, self.policy.tick_interval_seconds)

    def _record(self, run: Run, delay: float | None, now: float) -> Run | None:
        """Write a run and schedule its next turn; None: somebody has written it meanwhile."""
        due = None if delay is None else now + delay
        try:
            recorded = self.runs.put(replace(run, next_turn_at=due))
        except Conflict:
            # A person's wish came between: decided again with it.
            newest = self.runs.current()
            if newest is not None and newest.state is RunState.RUNNING:
                self._schedule(newest, 0.0)
            return None
        self.told(recorded)
        if delay is not None:
            self._schedule(recorded, delay)
        return recorded

    def _schedule(self, run: Run, delay: float) -> None:
        self.ticks.send(rotation_message(run.version), delay_seconds=delay)

    def _do(self, run: Run, action: RunAction, now: float) -> None:
        match action:
            case Begin(node_id=node_id):
                self.reception.rotate(asking(run, run.turn_of(node_id), now), now)
            case MakeReady(node_id=node_id):
                turn = run.turn_of(node_id)
                key = run.ahead_key_of(turn)
                said = replace(asking(run, turn, now), ahead=True, dedupe_key=key, event_id=key)
                self.reception.rotate(said, now)
            case CallOff(node_id=node_id):
                said = asking(run, run.turn_of(node_id), now)
                key = f"{said.dedupe_key}:called-off"
                self.reception.rotate(replace(said, closed=True, dedupe_key=key), now)
            case Elect(partitions=partitions):
                self.sources.kafka.elect(partitions)
            case Page(key=key, reason=reason):
                call(self.ticks, reason, page=key, run=run.id)


def asking(run: Run, turn: NodeTurn, now: float) -> Interruption:
    """Return what a run says about an instance, as an announcement its incident is opened by."""
    key = run.key_of(turn)
    return Interruption(
        kind=Kind.ROTATION,
        instance_id=turn.instance_id,
        event_id=key,
        dedupe_key=key,
        account=None,
        region=None,
        occurred_at=now,
        event_type=f"{turn.why.rstrip('.')} ({run.id})",
        body="",
        party=run.party_of(turn),
        image_id=turn.image_id,
    )


def observe_run(run: Run, sources: Sources, whose: Ownership, now: float) -> RunObservation:
    """Read everything a decision about a run rests on; what fails is said, not raised."""
    seen = observe_cluster(sources, whose, now)
    if seen.blind:
        return seen
    try:
        own = {t.node_id: found for t in run.open_turns if (found := _incident_of(run, t, sources))}
    except (StillwaterError, *NO_ANSWER) as error:
        return _blind(error, now)
    ahead = _made_ready(run, seen.others)
    ids = {incident.id for incident in (*own.values(), *ahead.values())}
    others = tuple(i for i in seen.others if i.id not in ids)
    return replace(seen, incidents=own, ahead=ahead, others=others)


def _made_ready(run: Run, opened: Iterable[Incident]) -> dict[int, Incident]:
    """Return, by node id, the incidents by which a run has only replacements made ready.

    One that AWS or somebody else has taken further is anybody's.
    """
    keys = {run.ahead_key_of(turn): turn.node_id for turn in run.waiting}
    return {
        keys[key]: incident
        for incident in opened
        for key in incident.announcements
        if key in keys and incident.ahead and is_planned(incident)
    }


def observe_cluster(sources: Sources, whose: Ownership, now: float) -> RunObservation:
    """Read the cluster, with every open incident as somebody else's."""
    kafka, silence = None, ""
    try:
        kafka = sources.kafka.read()
    except StillwaterError as error:
        silence = str(error)
    try:
        return RunObservation(
            now=now,
            nodes=sources.nodes.nodes(),
            claims=sources.claims.claims(),
            pods=sources.nodes.kafka_pods(),
            groups=sources.cloud.groups_of(whose),
            kafka=kafka,
            kafka_silence=silence,
            operator=read_operator(sources.nodes),
            others=sources.ledger.open_incidents(),
            freezes=sources.freezes.current(now),
        )
    except (StillwaterError, *NO_ANSWER) as error:
        return _blind(error, now)


def add_errors(snapshots: ErrorSnapshots, seen: RunObservation) -> RunObservation:
    """Add what the exporters say to a reading; raises nothing."""
    try:
        told = snapshots.ask(seen.now)
    except StillwaterError as error:
        return _blind(error, seen.now)
    return replace(seen, errors=told.errors, recovering=told.recovering)


def _blind(error: Exception, now: float) -> RunObservation:
    return RunObservation(now=now, blind=f"Nothing could be read: {error}")


def _incident_of(run: Run, turn: NodeTurn, sources: Sources) -> Incident | None:
    """Return the incident this run opened or joined for a node."""
    key = run.key_of(turn)
    history = rounds(sources.ledger, turn.instance_id)
    return next((i for i in reversed(history) if key in i.announcements), None)
