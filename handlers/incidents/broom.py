"""Sweeps up what queues and EventBridge lost, pages what lasts too long, files what is over.

core.incidents.sweep compares the lists; the sweep opens incidents, sends ticks and frees a lease
nobody is left to give back. One run looks closely at a bounded number of instances, and the next
goes on there. Filing goes archive, story, index: dying between two files again, to the same key.
Incidents expire only once their instance is gone, since rounds are numbered on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TypeVar

import boto3
from aws_lambda_powertools import Logger

from core.events import Kind
from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import SYSTEM_POOL, instance_of
from core.ground.words import id_list
from core.incidents.observation import NodeClaim, NodeView, PodView
from core.incidents.record import Incident, State, to_json
from core.incidents.record import is_unattended as incident_unattended
from core.incidents.sweep import (
    Announce,
    Concern,
    Finding,
    Snapshot,
    Wake,
    died_again,
    findings,
    is_answered,
    is_stranded,
    stands,
    turn,
)
from core.rotation.rebalance import Rebalance
from core.rotation.run_record import Run, is_unattended, unreadable_sentence
from core.settings.functions import SweepSettings
from handlers.adapters.aws import Ec2Inventory
from handlers.adapters.calls import CLIENT, NO_ANSWER, take_each
from handlers.adapters.kubernetes import NO_CLAIMS, EksNodes, NodeClaims
from handlers.adapters.pages import call
from handlers.incidents.reception import Reception
from handlers.incidents.shifts import (
    INCIDENT_CAUSE,
    ZONE_CAUSE,
    cordoned_in_vain,
    kept_in_vain,
    pending,
    protected_groups,
    shift_in_force,
    strays,
)
from handlers.store.documents import Freezes, Runs, is_left_throttled
from handlers.store.ledger import (
    KEPT_DAYS,
    SHIFT_MESSAGE,
    STRAYS_MESSAGE,
    Ledger,
    Stories,
    open_stories,
    rotation_message,
    rounds,
)
from handlers.store.table import Records

# A sweep's share; what is left over comes with the next.
MOST_PER_SWEEP = 25
_GONE = frozenset({State.RELEASED, State.LOST})


class Archive:
    """The S3 bucket where closed incidents go."""

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._s3 = boto3.client("s3", region_name=region, config=CLIENT)

    def store(self, key: str, line: str) -> None:
        """Write one object; the same key again replaces it."""
        self._s3.put_object(
            Bucket=self._bucket,
            Key=key,
            Body=f"{line}\n".encode(),
            ContentType="application/x-ndjson",
        )


def archive_key(incident: Incident) -> str:
    """Return where an incident is filed: by the day it ended, as Spark reads partitions."""
    day = datetime.fromtimestamp(incident.entered_at, UTC).date().isoformat()
    return f"incidents/closed_on={day}/{incident.id}.jsonl"


def archive_line(incident: Incident, cluster: str) -> str:
    """Return the incident as one JSON object: all of it, its cluster and when it ended.

    What AWS sent and the tokens that complete its hooks are left out: reports need neither.
    """
    document = json.loads(to_json(incident))
    document["hooks"] = sorted(incident.hooks)
    del document["drain_event"]
    document |= {"cluster": cluster, "closed_at": incident.entered_at}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class Archivist:
    """Files incidents of one cluster; `tell` queues their story once more."""

    ledger: Ledger
    archive: Archive
    tell: Callable[[Incident], None]
    cluster: str

    def file_closed(self) -> int:
        """File the incidents that are over; return how many were.

        Raises the first failure once all have been tried.
        """
        filed: list[Incident] = []
        closing = self.ledger.closing(MOST_PER_SWEEP)
        take_each(partial(self._file, incident, filed) for incident in closing)
        return len(filed)

    def _file(self, incident: Incident, filed: list[Incident]) -> None:
        line = archive_line(incident, self.cluster)
        self.archive.store(archive_key(incident), line)
        # The end of a story matters most, and its message may have got lost.
        self.tell(incident)
        try:
            self._take_off(incident)
            filed.append(incident)
        except Conflict:
            logger.info("An incident changed while it was filed.", incident_id=incident.id)

    def _take_off(self, incident: Incident) -> None:
        if incident.state not in _GONE:
            self.ledger.file(incident, None)
            return
        expires_at = incident.entered_at + KEPT_DAYS * 86_400
        for earlier in rounds(self.ledger, incident.instance_id):
            if earlier.id != incident.id and not earlier.open:
                self.ledger.file(earlier, expires_at)
        self.ledger.file(incident, expires_at)


def open_archivist(settings: SweepSettings, ledger: Ledger) -> Archivist:
    """Return the archivist of the sweep."""
    archive = Archive(settings.archive_bucket, settings.region)
    return Archivist(ledger, archive, open_stories(settings).tell_incident, settings.prefix)


# λ tick tries every minute; a service that is upgraded is away for minutes.
PATIENCE_SECONDS = 900.0
NOT_GIVEN_BACK, UNSEEN = "not_given_back", "sweep_blind"
_SENTENCES: Mapping[str, str] = {
    NOT_GIVEN_BACK: "For {minutes:.0f} min it could not be given back that {what}. λ tick tries "
    "every minute, and its log says what refuses.",
    UNSEEN: "For {minutes:.0f} min λ sweep could not read {what}; its log says why. Sick, lost and "
    "left-out machines stay unnoticed.",
}


def overdue(
    records: Records, cluster: str, page: str, what: Iterable[str], now: float
) -> Iterator[Concern]:
    """Yield a call for each thing that has lasted for too long; what is over is forgotten."""
    key = f"lasting#{cluster}#{page}"
    record = records.read(key)
    known = record.document if isinstance(record.document, dict) else {}
    since = {each: at if isinstance(at := known.get(each), float) else now for each in what}
    if since != known:
        try:
            records.write(key, since, record.version)
        except Conflict:
            return  # Another sweep looks at the same moment.
    for each, at in since.items():
        if now - at > PATIENCE_SECONDS:
            said = _SENTENCES[page].format(minutes=(now - at) / 60, what=each)
            yield Concern(f"{page}:{each}:{at:.0f}", said, page)


logger = Logger(service="stillwater")
T = TypeVar("T")
# Two questions to EC2 about status checks, and as many reads of the ledger as something is wrong
# with: seconds of work, far below a function's time limit, for as many nodes as clusters have.
MOST_INSTANCES = 200
CURSOR = "cursor#sweep"
# What cannot be told apart from nodes of others.
UNLABELLED = "a node of Kafka's (none that its pods run on has the label of a pool)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What one sweep has read of Kubernetes."""

    nodes: tuple[NodeView, ...] | None  # Kafka's; None: Kubernetes did not answer
    pods: tuple[PodView, ...]
    claims: tuple[NodeClaim, ...] | None  # None: they could not be read
    unread: tuple[str, ...]  # what could not be read


@dataclass(frozen=True)
class Broom:
    """Finds what was dropped."""

    reception: Reception
    inventory: Ec2Inventory
    nodes: EksNodes
    records: Records
    freezes: Freezes
    cluster: str
    late_seconds: float
    archivist: Archivist
    claims: NodeClaims = NO_CLAIMS
    stories: Stories = field(default_factory=partial(Stories, None))
    rebalances: Callable[[], tuple[tuple[Rebalance, str], ...]] = tuple
    most_instances: int = MOST_INSTANCES

    def sweep(self, now: float) -> dict[str, int]:
        """Open what was lost, wake what is stuck, free and file what is over; return the counts.

        Raises the first failure, once all that does not rest on it is done.
        """
        found = self._kubernetes()
        done = Counter({"opened": 0, "revived": 0, "looked_at": 0, "freed": 0, "filed": 0})
        take_each(
            (
                partial(self._compare, found, now, done),
                partial(self._free_lease, now, done),
                partial(self._look_after, found, now),
                lambda: done.update(filed=self.archivist.file_closed()),
            )
        )
        del done["nothing"], done["sick"]
        return {**done}

    def _compare(self, kubernetes: _Found, now: float, done: Counter[str]) -> None:
        """Open and wake what the lists show; without AWS's, wake whom no tick carries."""
        try:
            seen = self._lists(kubernetes, now)
            cursor = self.records.read(CURSOR)
            after = cursor.document if isinstance(cursor.document, str) else ""
            whose_turn, following = turn(seen.instance_ids(), after, self.most_instances)
            seen = self._closely(seen, whose_turn)
        except (StillwaterError, *NO_ANSWER):
            for incident in self.reception.ledger.open_incidents():
                if incident_unattended(incident, now, self.late_seconds):
                    done[self._act(Wake(incident, "AWS's lists could not be read."), now)] += 1
            raise
        done["looked_at"] = len(whose_turn)
        spares = [node for node in seen.nodes or () if node.spare_for is not None]
        found = findings(seen, whose_turn, self.late_seconds)
        take_each(
            chain(
                (partial(self._tell_forgotten, node, seen, now) for node in spares),
                (partial(self._carry_out, finding, now, done) for finding in found),
            )
        )
        if following != after:
            self._remember(following, cursor.version)

    def _look_after(self, found: _Found, now: float) -> None:
        """Ask for what is to be given back, carry the run, and call for what lasts."""
        take_each(
            (
                partial(self._ask_for_a_shift, now),
                partial(self._look_after_run, found, now),
                partial(self._tell_of_pause, now),
                partial(self._tell_of_rebalances, now),
                partial(self._call_for, UNSEEN, found.unread, now),
            )
        )

    def _ask_for_a_shift(self, now: float) -> None:
        if pending(self.freezes, self.records, self.cluster, now):
            self.reception.ticks.send(SHIFT_MESSAGE)

    def _look_after_run(self, found: _Found, now: float) -> None:
        run = Runs(self.records, self.cluster).current()
        self._wake_run(run, now)
        left = tuple(self._left(found, run, now))
        if left:
            self.reception.ticks.send(STRAYS_MESSAGE)
        self._call_for(NOT_GIVEN_BACK, (*left, *self._moved(now)), now)

    def _tell_of_pause(self, now: float) -> None:
        """Call for a pause that nobody here has made, nor knows the end of."""
        pause = self.freezes.current_pause(now)
        if pause is not None and pause.unreadable:
            reason = f"{pause.sentence} Deploy that release again, or `stillwater resume`."
            self._call_once(Concern("unreadable:pause", reason, "unreadable"), now)

    def _tell_of_rebalances(self, now: float) -> None:
        # Nobody is called where they cannot be read: they hide no machine, and Slack lacks a line.
        for rebalance, said in self._read("KafkaRebalances", self.rebalances, []) or ():
            if rebalance.is_news(now):
                self.stories.tell_rebalance(rebalance, said)

    def _left(self, found: _Found, run: Run | None, now: float) -> Iterator[str]:
        """Yield what is lent to incidents and runs that are over."""
        ledger = self.reception.ledger
        if is_left_throttled(self.records, self.cluster, run):
            yield "replication is throttled for a run that does not want it"
        for node in kept_in_vain(found.nodes or (), ledger):
            yield f"node {node.name} is kept from Cluster Autoscaler for {node.spare_for}"
        for name, id_ in cordoned_in_vain(found.nodes or (), ledger).items():
            yield f"node {name} is cordoned for {id_}"
        for pod, incident_id in strays(found.pods, ledger, now):
            yield f"pod {pod} may leave with others for {incident_id}"

    def _moved(self, now: float) -> Iterator[str]:
        """Yield what was moved for incidents that are over, and zones that are well again."""
        frozen = {freeze.zone for freeze in self.freezes.current(now)}
        current = {f"{INCIDENT_CAUSE}{i.id}" for i in self.reception.ledger.open_incidents()}
        current |= {f"{ZONE_CAUSE}{zone}" for zone in frozen}
        owed = shift_in_force(self.records, self.cluster).brokers_owed(current.__contains__)
        if owed:
            yield f"broker {id_list(sorted(owed))} leads nothing"
        groups = () if frozen else protected_groups(self.records, self.cluster)
        if groups:
            yield f"no scale-in may take instances of {', '.join(groups)}"

    def _wake_run(self, run: Run | None, now: float) -> None:
        if run is not None and run.unreadable:
            reason = unreadable_sentence(run)
            self._call_once(Concern(f"unreadable:{run.id}", reason, "unreadable"), now)
        elif run is not None and is_unattended(run, now, self.late_seconds):
            logger.warning("No turn carried the rotation run.", run=run.id)
            self.reception.ticks.send(rotation_message(run.version))

    def _kubernetes(self) -> _Found:
        """Read Kubernetes' lists, the pods before the ledger: what is known of each is as old."""
        unread: list[str] = []
        claims = self._read("NodeClaims", self.claims.claims, unread)
        nodes = self._read("Nodes", self.nodes.nodes, unread)
        kafkas = tuple(n for n in nodes or () if _kafkas(n.pool) and n.instance_id)
        pods = self._read("Kafka's pods", self.nodes.kafka_pods, unread) or ()
        if nodes is not None and not kafkas and any(pod.node_name for pod in pods):
            unread.append(UNLABELLED)
            logger.warning("No node that Kafka's pods run on has the label of a pool.")
        return _Found(
            nodes=None if nodes is None else kafkas, pods=pods, claims=claims, unread=tuple(unread)
        )

    def _lists(self, found: _Found, now: float) -> Snapshot:
        whose = self.reception.whose
        return Snapshot(
            now=now,
            groups=self.reception.cloud.groups_of(whose),
            states=self.inventory.instance_states(whose),
            nodes=found.nodes,
            pods=found.pods,
            claims=found.claims and tuple(each for each in found.claims if each.leaves),
            standing=tuple(c for c in found.claims or () if not c.leaves and _kafkas(c.pool)),
            incidents=self.reception.ledger.open_incidents(),
            zones_in_trouble=self._zones_in_trouble(),
        )

    def _zones_in_trouble(self) -> frozenset[str]:
        """Return the zones that an open incident is about, borne out or not."""
        about = [i for i in self.freezes.incidents() if i.open]
        names = self.reception.cloud.zone_names() if about else {}
        return frozenset(
            zone
            for i in about
            for id_ in (*i.zone_ids, i.zone_id)
            if (zone := names.get(id_ or ""))
        )

    def _read(
        self, what: str, read: Callable[[], tuple[T, ...]], unread: list[str]
    ) -> tuple[T, ...] | None:
        """Return a list of Kubernetes'; without an answer the others are compared all the same."""
        try:
            return read()
        except StillwaterError as error:
            logger.warning(f"The sweep saw no {what}.", error=str(error))
            unread.append(what)
            return None

    def _closely(self, seen: Snapshot, whose_turn: Sequence[str]) -> Snapshot:
        """Add the status checks, and what EC2 says of nodes that its list leaves out."""
        running = [id_ for id_ in whose_turn if seen.states.get(id_) == "running"]
        # A claim of this cluster's is enough, whatever tags its instance has, and so is its Kafka:
        # whoever detaches an instance takes the group's tag off it.
        hosts = {pod.node_name for pod in seen.pods}
        claimed = {claim.instance_id for claim in seen.standing}
        claimed |= {node.instance_id for node in seen.nodes or () if node.name in hosts}
        known = claimed | {node.instance_id for node in seen.nodes or ()}
        unlisted = (known & set(whose_turn)) - seen.states.keys()
        states, foreign = dict(seen.states), set()
        for instance_id in sorted(id_ for id_ in unlisted if id_):
            instance = self.reception.cloud.instance(instance_id)
            if instance is None:
                continue
            if instance_id in claimed or self.reception.whose.owns(instance.tags):
                states[instance_id] = instance.state
            else:
                foreign.add(instance_id)
        kept = tuple(n for n in seen.nodes or () if n.instance_id not in foreign)
        # EC2 hides all that it is asked about behind one that it has just forgotten.
        ended = sorted({c.instance_id for c in seen.claims or () if c.instance_id} - set(running))
        statuses = {**(self.inventory.statuses(ended) if ended else {})}
        return replace(
            seen,
            states=states,
            nodes=None if seen.nodes is None else kept,
            statuses={**statuses, **self.inventory.statuses(running)},
        )

    def _carry_out(self, finding: Finding, now: float, done: Counter[str]) -> None:
        """Act on a finding, but on one sick machine at a time."""
        if _sick(finding) and done["sick"]:
            return
        outcome = self._act(finding, now)
        done[outcome] += 1
        done["sick"] += _sick(finding) and outcome == "opened"

    def _act(self, finding: Finding, now: float) -> str:
        """Carry out one finding; return what it is counted as."""
        match finding:
            case Wake(incident=incident, reason=reason):
                logger.warning(reason, incident_id=incident.id)
                self.reception.wake(incident)
                return "revived"
            case Announce():
                return "opened" if self._announce(finding, now) else "nothing"
            case Concern():
                self._call_once(finding, now)
                return "nothing"

    def _call_for(self, page: str, what: Iterable[str], now: float) -> None:
        for concern in overdue(self.records, self.cluster, page, what, now):
            self._call_once(concern, now)

    def _call_once(self, concern: Concern, now: float) -> None:
        key = f"{concern.key}:{now // 86_400:.0f}"  # once a day, while it lasts
        self.reception.call_once(key, concern.reason, now, page=concern.page)

    def _announce(self, found: Announce, now: float) -> bool:
        history = rounds(self.reception.ledger, found.interruption.instance_id)
        if is_answered(history, found, now):
            return False
        # An open incident is the last round; what joins it belongs to that one.
        number = len(history) if history and history[-1].open else len(history) + 1
        let_go = stands(history, found, now)
        again = let_go or died_again(history, found)
        if not self.reception.discover(found.recurrence(number), now, again=again):
            return False
        if let_go:
            last = history[-1]
            call(
                self.reception.ticks,
                f"{found.reason} Incident {last.id} let it go: it is {last.state.value}.",
                page="let_go_and_stands",
                instance_id=last.instance_id,
            )
        logger.warning(found.reason, instance_id=found.interruption.instance_id)
        return True

    def _tell_forgotten(self, spare: NodeView, seen: Snapshot, now: float) -> None:
        """Tell of an incident that Kubernetes remembers and the ledger does not.

        A ledger that was restored to an older moment knows nothing of drains that were sent since.
        One that the termination handler has begun keeps everybody else waiting from here on.
        """
        id_ = spare.spare_for or ""
        if self.reception.ledger.get(id_) is not None:
            return
        about = (n for n in seen.nodes or () if n.instance_id == instance_of(id_))
        if any(not node.schedulable for node in about):
            self.reception.ledger.take_lease(id_, now, 0.0, out=True)
        reason = (
            f"Node {spare.name} is kept for incident {id_}, and the ledger knows no such incident: "
            f"was it restored to an older moment? Pause, and see what is drained."
        )
        key = f"forgotten:{id_}"
        self.reception.call_once(key, reason, now, page="forgotten", incident_id=id_)

    def _free_lease(self, now: float, done: Counter[str]) -> None:
        """Give back a lease whose holder is over."""
        ledger = self.reception.ledger
        for lease in ledger.leases():
            if not is_stranded(lease, ledger.get(lease.holder), now):
                continue
            logger.warning("A lease outlived its incident.", incident_id=lease.holder)
            try:
                ledger.drop_lease(lease.holder)
            except Conflict:
                continue  # It changed hands at this moment.
            done["freed"] += 1

    def _remember(self, cursor: str, version: int) -> None:
        try:
            self.records.write(CURSOR, cursor, version)
        except Conflict:
            # Another run was as far at the same moment; either cursor is as good.
            logger.info("Another sweep moved the cursor.")


def _kafkas(pool: str | None) -> bool:
    return pool not in {None, SYSTEM_POOL}


def _sick(finding: Finding) -> bool:
    """Say whether it is about a sick machine: of those one leaves at a time."""
    return isinstance(finding, Announce) and finding.interruption.kind is Kind.SICK_NODE
