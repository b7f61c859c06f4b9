"""Tells an incident that changed, of an instance or a zone, in its thread.

Messages of the `stories` queue only name an incident: the story is what the ledger says
when it is told, so messages may come twice, late or in any order. Those of a KafkaRebalance say
what is told, each word of it once. Every step is claimed in the
ledger before Slack is called and recorded after. One that was claimed and never recorded is looked
for in Slack before it is posted again.

Nothing waits for Slack: what it will not take now goes back on the queue with a delay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from core import slack
from core.ground.constants import STORIES_DELAYED
from core.ground.errors import Conflict
from core.rotation.run_record import run_behind
from core.slack import Thread, ThreadStep, next_step
from core.slack import next_rotation_step as run_step
from handlers.adapters import metrics
from handlers.adapters.aws import Queue, Secret
from handlers.adapters.slack import (
    TOKEN_ERRORS,
    Channel,
    Posted,
    RateLimited,
    RefusedBySlack,
    Unreachable,
)
from handlers.store.documents import Freezes, Runs, Threads
from handlers.store.ledger import Ledger

logger = Logger(service="stillwater")
# Slack takes about one message a second; the rest of a long story is told by the next message.
MOST_STEPS = 10
BUSY_SECONDS = 5.0
# Doubled with every attempt, up to SQS's longest delay: about two and a half hours of trying.
FIRST_DELAY_SECONDS = 30.0
MOST_ATTEMPTS = 14
# Slack's clock may be behind ours.
CLOCKS_APART_SECONDS = 300.0
# A message about a rebalance may be tried for so long, and is looked for as far back.
SOUGHT_SECONDS = 10_800.0
T = TypeVar("T")


@dataclass(frozen=True)
class ThreadStory:
    """What is told in one thread, and since when; `within` names the run in whose thread."""

    id: str
    since: float
    next_step: Callable[[Thread], ThreadStep | None]
    within: str | None = None


@dataclass(frozen=True)
class Teller:
    """Tells incidents and rotation runs to one channel."""

    ledger: Ledger
    runs: Runs
    threads: Threads
    channel: Channel
    stories: Queue
    freezes: Freezes
    cluster: str
    hold_limit_seconds: float
    runbooks_url: str

    def take(self, message: str, now: Callable[[], float]) -> None:
        """Tell the story a message names as far as Slack lets us; the rest goes back in line."""
        named = json.loads(message)
        incident_id, attempt = named["incident_id"], int(named.get("attempt", 0))
        back = partial(self._put_back, named)
        story = self._rebalance_story(named, now()) if "said" in named else self._story(incident_id)
        if story is None:
            return
        try:
            if not self._tell(story, now):
                back(attempt, 1.0)
        except Conflict as error:
            logger.info(str(error), incident_id=incident_id)
            back(attempt, BUSY_SECONDS)
        except (RateLimited, Unreachable) as error:
            wait = FIRST_DELAY_SECONDS * 2**attempt
            if isinstance(error, RateLimited):
                wait = max(error.retry_after_seconds, wait if attempt else 0.0)
            logger.warning(str(error), incident_id=incident_id, wait_seconds=wait)
            back(attempt + 1, wait)

    def _put_back(self, named: Mapping[str, Any], attempt: int, delay: float) -> None:
        metrics.count(STORIES_DELAYED)
        if attempt > MOST_ATTEMPTS:
            # The sweep tells it once more when the incident is filed.
            story = named["incident_id"]
            logger.error("Slack was given up on for this thread.", incident_id=story)
            return
        self.stories.send(json.dumps({**named, "attempt": attempt}), delay_seconds=delay)

    def _story(self, id_: str) -> ThreadStory | None:
        """Return an incident's story, or that of a rotation run; None: it is not known any more."""
        run = self.runs.find(id_)
        if run is not None:
            return ThreadStory(
                id_, run.started_at, lambda thread: run_step(run, thread, self.cluster)
            )
        if id_.startswith(slack.PREFIX):
            return self._zone_story(id_)
        incident = self.ledger.get(id_)
        if incident is None:
            return None
        limit, runbooks = self.hold_limit_seconds, self.runbooks_url
        return ThreadStory(
            id_,
            incident.opened_at,
            lambda thread: next_step(incident, thread, self.cluster, limit, runbooks),
            run_behind(incident.announcements),
        )

    def _rebalance_story(self, named: Mapping[str, Any], now: float) -> ThreadStory:
        id_, name, said = named["incident_id"], named["name"], named["said"]
        return ThreadStory(
            id_,
            now - SOUGHT_SECONDS,
            lambda thread: slack.next_rebalance_step(id_, name, said, thread, self.cluster),
        )

    def _zone_story(self, id_: str) -> ThreadStory | None:
        about = (i for i in self.freezes.incidents() if slack.story_id(i) == id_)
        found = next(about, None)
        if found is None:
            return None
        return ThreadStory(
            id_, found.opened_at, lambda thread: slack.next_zone_step(found, thread, self.cluster)
        )

    def _tell(self, story: ThreadStory, now: Callable[[], float]) -> bool:
        """Take step after step; False when there is more to tell than one message may."""
        thread = self._place_in_run(story, self.threads.get(story.id), now)
        for _ in range(MOST_STEPS):
            step = story.next_step(thread)
            if step is None:
                return True
            thread = self._take_step(story, thread, step, now())
        return False

    def _place_in_run(self, story: ThreadStory, thread: Thread, now: Callable[[], float]) -> Thread:
        """Put a thread that has not begun into the one of its run, whose head comes first."""
        if story.within is None or thread.ts is not None:
            return thread
        run = self._story(story.within)
        if run is None:
            return thread  # Long over and replaced: a thread of its own.
        if self.threads.get(run.id).ts is None:
            self._tell(run, now)
        told = self.threads.get(run.id)
        return replace(thread, root=told.ts, channel=told.channel)

    def _take_step(
        self, story: ThreadStory, thread: Thread, step: ThreadStep, now: float
    ) -> Thread:
        if thread.busy(now):
            raise Conflict(f"The thread of {thread.incident_id} is being written by another.")
        begun_before = thread.doing == step.key
        claimed = self.threads.put(thread.begun(step, now))
        try:
            posted = self._carry_out(story, claimed, step, begun_before=begun_before)
        except (RateLimited, RefusedBySlack):
            # Slack took nothing, so nobody needs to look for it.
            self.threads.put(claimed.given_up())
            raise
        logger.info("Told Slack.", incident_id=thread.incident_id, step=step.action)
        return self.threads.put(claimed.advance(step, posted.channel, posted.ts))

    def _carry_out(
        self, story: ThreadStory, thread: Thread, step: ThreadStep, *, begun_before: bool
    ) -> Posted:
        if step.action == "edit" and thread.ts is not None and thread.channel is not None:
            head = Posted(thread.channel, thread.ts)
            self.channel.edit(head, step.key, step.message)
            return head
        under, first = None, thread.root or thread.ts
        if first is not None and thread.channel is not None:
            under = Posted(thread.channel, first)
        found = None
        if begun_before:
            since = story.since - CLOCKS_APART_SECONDS
            found = self.channel.find(step.key, since, under)
        return found or self.channel.post(step.key, step.message, under)


class RenewedChannel:
    """A channel whose token is read from Secrets Manager, again when Slack refuses it."""

    def __init__(self, secret: Secret, connect: Callable[[str], Channel]) -> None:
        self._secret, self._connect = secret, connect
        self._channel = connect(secret.value())

    def post(self, key: str, message: Any, thread: Posted | None) -> Posted:
        return self._call_renewing(lambda channel: channel.post(key, message, thread))

    def edit(self, where: Posted, key: str, message: Any) -> None:
        self._call_renewing(lambda channel: channel.edit(where, key, message))

    def find(self, key: str, since: float, thread: Posted | None) -> Posted | None:
        return self._call_renewing(lambda channel: channel.find(key, since, thread))

    def _call_renewing(self, call: Callable[[Channel], T]) -> T:
        try:
            return call(self._channel)
        except RefusedBySlack as error:
            if error.code not in TOKEN_ERRORS:
                raise
        self._channel = self._connect(self._secret.renew())
        return call(self._channel)
