"""`stillwater incidents`, `incident show`, `hold`, `release`, `ignore`: the ledger, for people.

A wish is one conditional write and one tick; λ tick acts on it like on anything else it observes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli import aws, described, target, watching
from cli.described import DescribedKafka
from cli.moments import moment_of
from cli.reach import out_of_reach
from cli.watching import Pace, Page
from core import naming
from core.cluster import ClusterSpec
from core.errors import Conflict, InvalidInput, StillwaterError
from core.fields import instance_in
from core.incidents.joining import ask_release, hold, ignore
from core.incidents.record import Incident, Transition, flat
from core.slack.text import durations, outlook, subject, symbol
from core.words import span, time_said
from handlers.adapters.aws import tick_message
from handlers.store.ledger import DynamoLedger, incident_in, rounds
from handlers.store.pauses import Pauses
from handlers.store.records import DynamoRecords

PACE = Pace(seconds=2.0)
MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class Desk:
    """One environment's ledger, as the caller."""

    spec: ClusterSpec | DescribedKafka
    session: Any
    endpoint_url: str | None = None

    @classmethod
    def of(cls, environment: str) -> Desk:
        """Return the running twin's for `local`, a description's, or the stacks' settings'."""
        if described.is_meant(environment):
            known = described.of(environment)
            return cls(known, aws.session(region=known.region))
        found = target.of(environment)
        return cls(found.spec, found.session, found.endpoint_url)

    @property
    def of_ours(self) -> ClusterSpec:
        """Return the spec of a cluster that our stacks made; raise InvalidInput of another."""
        if isinstance(self.spec, ClusterSpec):
            return self.spec
        raise InvalidInput(
            [f"{self.spec.prefix} is a cluster that exists; this is for those our stacks made."]
        )

    @cached_property
    def _clients(self) -> aws.Clients:
        return aws.Clients(partial(self.session.client, endpoint_url=self.endpoint_url))

    def client(self, service: str, config: Config | None = None) -> Any:
        return self._clients(service) if config is None else self._clients(service, config=config)

    @property
    def table(self) -> str:
        return naming.ledger_table(self.spec.prefix)

    @property
    def ledger(self) -> DynamoLedger:
        return DynamoLedger(
            self.table, self.spec.name, self.spec.region, client=self.client("dynamodb")
        )

    def incidents(self, *, closed: bool) -> list[Incident]:
        """Return the open incidents, or all the table still holds; the newest last."""
        if not closed:
            return sorted(self.ledger.open_incidents(), key=lambda each: each.opened_at)
        pages = (
            self.client("dynamodb")
            .get_paginator("scan")
            .paginate(
                TableName=self.table,
                FilterExpression="begins_with(pk, :prefix)",
                ExpressionAttributeValues={":prefix": {"S": "incident#"}},
            )
        )
        found = [incident_in(item) for page in pages for item in page["Items"]]
        return sorted(found, key=lambda each: each.opened_at)

    def latest(self, named: str) -> Incident:
        """Return an incident by its id, or the latest of an instance."""
        exact = self.ledger.get(named)
        named_round = "." in named or exact is None
        found = exact if named_round else rounds(self.ledger, named)[-1]
        if found is not None:
            return found
        what = "instance" if instance_in(named) else "incident"
        problem = (
            f"The ledger {self.table} knows no {what} {named}; "
            f"`stillwater incidents {self.spec.environment} --all` lists what it holds."
        )
        raise InvalidInput([problem])

    def wish(self, named: str, change: Callable[[Incident], Incident]) -> Incident:
        """Write what a person wants over the newest version, and have the loop look at once."""
        for _ in range(MOST_ATTEMPTS):
            current = self.latest(named)
            try:
                written = self.ledger.put(change(current))
            except Conflict:
                # A tick was faster, unless it is the wish itself that comes too late.
                if self.latest(named).version == current.version:
                    raise
                continue
            self.send_tick(tick_message(written.id, written.version))
            return written
        raise Conflict(f"Incident {named} kept changing; try again in a moment.")

    def send_tick(self, message: str) -> None:
        """Have the loop look at once."""
        sqs = self.client("sqs")
        queue = naming.queue(self.spec.prefix, "ticks")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=message)

    @property
    def records(self) -> DynamoRecords:
        """Return the single documents of the ledger's table."""
        return DynamoRecords(self.table, self.spec.region, client=self.client("dynamodb"))

    @property
    def pauses(self) -> Pauses:
        return Pauses(self.records, self.spec.name)

    @property
    def actor(self) -> str:
        """Return who asks, as AWS knows them: the last part of the caller's ARN."""
        arn = str(self.client("sts").get_caller_identity()["Arn"])
        return arn.rpartition("/")[2].rpartition(":")[2]


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
    with sentences():
        desk = Desk.of(environment)
        if as_json:
            for incident in desk.incidents(closed=closed):
                _say_json(incident, console)
            return

        def look(now: float) -> Page[None]:
            found = table(desk.incidents(closed=closed), now)
            pause = desk.pauses.current(now)
            # First of all: it is why nothing moves.
            return (Group(Text(pause.sentence, "bold"), found) if pause else found), None

        if watch:
            watching.watch(console, look, pace)
        else:
            page, _ = look(time.time())
            console.print(page)


def _say_json(incident: Incident, console: Console) -> None:
    said = json.dumps(_plain(incident), sort_keys=True)
    console.print(said, markup=False, highlight=False, soft_wrap=True)


def show_one(environment: str, named: str, console: Console, *, as_json: bool = False) -> None:
    """Print one incident: what it is about, and everything that happened, in order."""
    with sentences():
        desk = Desk.of(environment)
        incident = desk.latest(named)
    if as_json:
        _say_json(incident, console)
        return
    console.print(timeline(incident, float(desk.spec.timings.hold_limit_seconds)))


def hold_instance(desk: Desk, instance: str, until: str) -> str:
    """Keep an instance until a moment; return what was noted."""
    now = time.time()
    moment = moment_of(until, now)
    return _wish(desk, instance, lambda i, actor: hold(i, moment, actor, now))


def release_instance(desk: Desk, instance: str) -> str:
    """Let an instance go without a replacement and without Kafka's consent; still drained first."""
    return _wish(desk, instance, lambda i, actor: ask_release(i, actor, time.time()))


def ignore_incident(desk: Desk, named: str, because: str) -> str:
    """End an incident without doing anything; return what was noted."""
    return _wish(desk, named, lambda i, actor: ignore(i, actor, because, time.time()))


def _wish(desk: Desk, named: str, change: Callable[[Incident, str], Incident]) -> str:
    with sentences():
        actor = desk.actor
        written = desk.wish(named, lambda incident: change(incident, actor))
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


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what AWS refuses into a sentence."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StillwaterError(
            out_of_reach("The ledger could not be read or written.", error)
        ) from None
