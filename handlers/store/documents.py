"""Keeps single documents of the ledger's table: zones, pause, runs, stories, pages, throttles.

`pause#<cluster>`, `story#<incident id>`, and `rotation#<cluster>` for the latest run, with earlier
ones under `rotation#<cluster>#<id>`. Of the zones' incidents only who changes the document writes
it: a duplicate notice costs one read. A page comes before its record: dying in between calls a
person twice, and never not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from core.availability.consent import Freeze
from core.ground.errors import Conflict
from core.ground.fields import digest
from core.incidents.actions import Page
from core.incidents.joining import Pause, pause_from_document, pause_to_document
from core.rotation.run_record import Run, RunState, run_from_document, run_to_document
from core.slack import Thread, from_json, to_json
from core.zones.evidence import ZoneSight, judge
from core.zones.incident import (
    PERSON,
    LostZone,
    ZoneIncident,
    ZoneWord,
    freezes_in_force,
    hear,
    name_zones,
    thaw,
    zones_from_document,
    zones_to_document,
)
from handlers.adapters.aws import Queue
from handlers.adapters.calls import known_shape
from handlers.adapters.pages import call
from handlers.store.ledger import KEPT_DAYS
from handlers.store.table import Records, VersionedTable, retry_on_newer


def pause_key(cluster: str) -> str:
    return f"pause#{cluster}"


class Pauses:
    """Whether a cluster is paused, as last written."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, pause_key(cluster)

    def current(self, now: float) -> Pause | None:
        """Return the pause that holds; None: there is none."""
        pause = pause_from_document(self._records.read(self._key).document)
        return pause if pause is not None and pause.holds(now) else None

    def write(self, pause: Pause | None) -> None:
        """Pause, or resume with None; the last word stands. Raises Conflict if others keep on."""
        document, read = pause_to_document(pause), self._records.read
        retry_on_newer(lambda: self._records.write(self._key, document, read(self._key).version))


Incidents = tuple[ZoneIncident, ...]


class Freezes:
    """The zones' incidents of one cluster."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, f"freezes#{cluster}"
        self._pauses = Pauses(records, cluster)

    def note(
        self, word: ZoneWord, now: float, names: Mapping[str, str] | None = None
    ) -> tuple[Freeze, ...]:
        """Add what was said and return what is in force; a duplicate changes nothing.

        Raises Conflict when others keep writing: the message is then delivered again.
        """
        known = dict(names or {})
        if isinstance(word, LostZone) and word.zone is not None:
            known[word.zone_id] = word.zone
        heard = self._change(lambda incidents: name_zones(hear(word, incidents, now), known))
        return freezes_in_force(heard, now)

    def current(self, now: float) -> tuple[Freeze, ...]:
        """Return the freezes in force."""
        return freezes_in_force(self.incidents(), now)

    def current_pause(self, now: float) -> Pause | None:
        """Return the pause of the whole cluster that holds; None: there is none."""
        return self._pauses.current(now)

    def incidents(self) -> Incidents:
        """Return every zone's incident that is remembered."""
        return zones_from_document(self._records.read(self._key).document)

    def judge(self, sight: ZoneSight, call: Callable[[Page], None]) -> Incidents:
        """Freeze what is borne out and thaw what is too old; call whom that concerns."""

        def judged(incidents: Incidents) -> Incidents:
            after, pages = judge(name_zones(incidents, sight.names), sight)
            for page in pages:
                # Before it is written: who dies in between calls twice, and never not at all.
                call(page)
            return name_zones(after, sight.names)

        return self._change(judged)

    def freeze(
        self, zone_id: str, zone: str, now: float, until: float, actor: str, because: str
    ) -> Incidents:
        """Freeze a zone because a person says so, until then."""
        said = f"{actor}: {because}" if because else actor
        word = LostZone(zone_id, zone, source=PERSON, occurred_at=now, until=until, said=said)
        return self._change(
            lambda incidents: name_zones(hear(word, incidents, now), {zone_id: zone})
        )

    def thaw(self, zone_id: str, now: float, actor: str, because: str) -> Incidents:
        """Thaw a zone because a person says so; no word about the same events freezes it again."""
        return self._change(lambda incidents: thaw(incidents, zone_id, now, actor, because))

    def _change(self, change: Callable[[Incidents], Incidents]) -> Incidents:
        return retry_on_newer(lambda: self._changed_once(change))

    def _changed_once(self, change: Callable[[Incidents], Incidents]) -> Incidents:
        record = self._records.read(self._key)
        before = zones_from_document(record.document)
        after = change(before)
        if after != before:
            self._records.write(
                self._key, zones_to_document(after, record.document), record.version
            )
        return after


class Runs:
    """The runs of one cluster; one that cannot be read at all raises StillwaterError."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, f"rotation#{cluster}"

    @known_shape("The ledger's document of the rotation run")
    def current(self) -> Run | None:
        """Return the run as last written, over or not; None where there never was one."""
        record = self._records.read(self._key)
        return (
            None if record.document is None else run_from_document(record.document, record.version)
        )

    @known_shape("The ledger's document of a rotation run")
    def find(self, id_: str) -> Run | None:
        """Return a run by its id: the one that goes on, the last one, or one before it."""
        if not id_.startswith("rotation-"):
            return None
        run = self.current()
        if run is not None and run.id == id_:
            return run
        record = self._records.read(f"{self._key}#{id_}")
        return (
            None if record.document is None else run_from_document(record.document, record.version)
        )

    def put(self, run: Run) -> Run:
        """Write a run over the version it was read at; raises Conflict when that has changed."""
        self._records.write(self._key, run_to_document(run), run.version)
        return replace(run, version=run.version + 1)

    def replace_by(self, run: Run) -> Run:
        """Write a new run where an earlier one is over; Conflict while that one goes on."""
        earlier = self.current()
        if earlier is not None:
            if not earlier.over:
                raise Conflict(
                    f"Run {earlier.id} is {earlier.state.value}; one rotation at a time. See "
                    f"`stillwater rotate status`, or abort it first."
                )
            self._keep(earlier)
        return self.put(replace(run, version=0 if earlier is None else earlier.version))

    def _keep(self, run: Run) -> None:
        key = f"{self._key}#{run.id}"
        kept = self._records.read(key)
        if kept.document is None:
            self._records.write(key, run_to_document(run), kept.version)


class Threads:
    """The threads, each written over the version it was read at."""

    def __init__(self, table: VersionedTable) -> None:
        self._table = table

    def get(self, incident_id: str) -> Thread:
        """Return a thread as last written; one never written is new, at version 0."""
        item = self._table.item(f"story#{incident_id}")
        if item is None:
            return Thread(incident_id=incident_id)
        return replace(from_json(item["document"]["S"]), version=int(item["version"]["N"]))

    def put(self, thread: Thread) -> Thread:
        """Write a thread; raises Conflict when somebody has written since it was read."""
        item = {
            "pk": {"S": f"story#{thread.incident_id}"},
            "version": {"N": str(thread.version + 1)},
            "document": {"S": to_json(thread)},
            # An incident that is held for months is told again in a new thread: no harm.
            "expires_at": {"N": str(int(time.time()) + KEPT_DAYS * 86_400)},
        }
        conflict = f"The thread of {thread.incident_id} is being written by another invocation."
        self._table.write(item, thread.version, conflict)
        return replace(thread, version=thread.version + 1)


KEY = "told"
# AWS repeats what it asks an owner to do for weeks; after this, once more is right.
KEPT_SECONDS = 90 * 86_400.0
MOST_KEPT = 2000


def call_once(
    records: Records, ticks: Queue, key: str, now: float, reason: str, *, page: str, **about: str
) -> None:
    """Call a person about `page`, unless somebody was called about `key` already."""
    if digest(key) not in _recent(records.read(KEY).document, now):
        call(ticks, reason, page=page, **about)
        _remember(records, key, now)


def _remember(records: Records, key: str, now: float) -> None:
    record = records.read(KEY)
    kept = {**_recent(record.document, now), digest(key): now}
    newest = sorted(kept.items(), key=lambda item: item[1])[-MOST_KEPT:]
    try:
        records.write(KEY, dict(newest), record.version)
    except Conflict:
        return  # Another call was remembered at this moment: this one may come once more.


def _recent(document: object, now: float) -> dict[str, float]:
    return {
        name: at
        for name, at in (document.items() if isinstance(document, dict) else ())
        if isinstance(at, int | float) and now - at < KEPT_SECONDS
    }


def throttle_key(cluster: str) -> str:
    """Return the key of a cluster's document."""
    return f"throttle#{cluster}"


@known_shape("The ledger's document of throttled topics")
def is_left_throttled(records: Records, cluster: str, run: Run | None) -> bool:
    """Say whether something is throttled for a run that does not want it any more."""
    document = records.read(throttle_key(cluster)).document
    if not document:
        return False
    current = run is not None and run.id == document["run"] and run.state is RunState.RUNNING
    return not (current and run is not None and run.throttled)
