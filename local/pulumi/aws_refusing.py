"""Refuses what AWS would refuse, before a resource is made or changed.

moto and the store take almost anything. The gate of local/refusals does not; what several resources
exceed together is judged over all that the store holds.
"""

from __future__ import annotations

import threading

from local.pulumi.provider import Resource
from local.refusals import calls, gate, neighbours
from local.refusals.refusal import Refused, Wanted
from local.store import ResourceStore, folder
from local.values import Properties

_TOKENS = {folder(token): token for token in calls.TYPES}


class RefusalGate:
    """Judges a resource beside all others of the environment; shared by the provider's threads."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        self._known: dict[tuple[str, str], Wanted] | None = None
        self._lock = threading.Lock()

    def judge(self, resource: Resource, inputs: Properties, identity: str | None = None) -> None:
        """Raise Refused for what AWS would refuse; `identity` is of one that exists already."""
        wanted = Wanted(resource.type, resource.name, inputs)
        found = gate.refusals(wanted)
        others = self._others(resource.type, identity)
        found += [
            each
            for each in neighbours.refusals([*others, wanted])
            if each.resource == resource.name
        ]
        if found:
            raise Refused(dict.fromkeys(found))

    def change(self, resource: Resource, there: Properties, inputs: Properties) -> None:
        """Raise Refused for a step that AWS would refuse of what stands."""
        before, after = (Wanted(resource.type, resource.name, each) for each in (there, inputs))
        found = gate.change_refusals(before, after)
        if found:
            raise Refused(found)

    def leave(self, resource: Resource, inputs: Properties, identity: str) -> None:
        """Raise Refused where AWS would not delete, because of protection or of what holds it."""
        others = self._others(resource.type, identity)
        found = gate.deletion_refusals(Wanted(resource.type, identity, inputs), others)
        if found:
            raise Refused(dict.fromkeys(found))

    def note_made(self, resource_type: str, identity: str, inputs: Properties) -> None:
        """Note what exists from now on."""
        with self._lock:
            self._all()[resource_type, identity] = Wanted(resource_type, identity, inputs)

    def note_gone(self, resource_type: str, identity: str) -> None:
        """Note what exists no longer."""
        with self._lock:
            self._all().pop((resource_type, identity), None)

    def _others(self, resource_type: str, identity: str | None) -> list[Wanted]:
        # A list of its own: other threads make resources while this one is judged.
        with self._lock:
            known = self._all().items()
            return [each for key, each in known if key != (resource_type, identity)]

    def _all(self) -> dict[tuple[str, str], Wanted]:
        """Return what exists, read once; the caller holds the lock."""
        if self._known is None:
            self._known = {
                (_TOKENS[kept], identity): Wanted(_TOKENS[kept], identity, state)
                for kept, identity, state in self._store.everything()
                if kept in _TOKENS
            }
        return self._known
