"""What the twin's AWS refuses, as AWS would: asked before a resource is made or changed.

moto and the store take almost anything. The gate of local/refusals does not; what several resources
exceed together is judged over all that the store holds.
"""

from __future__ import annotations

import threading

from local.pulumi.aws_store import Store, folder
from local.pulumi.provider import Resource
from local.pulumi.values import Properties
from local.refusals import calls, gate, together
from local.refusals.refusal import Refused, Wanted

_TOKENS = {folder(token): token for token in calls.TYPES}


class Gate:
    """Judges a resource beside all others of the environment; shared by the provider's threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], Wanted] | None = None
        self._lock = threading.Lock()

    def judge(self, resource: Resource, inputs: Properties, identity: str | None = None) -> None:
        """Raise Refused for what AWS would refuse; `identity` is of one that exists already."""
        wanted = Wanted(resource.type, resource.name, inputs)
        found = gate.refusals(wanted)
        others = [each for key, each in self._all().items() if key != (resource.type, identity)]
        found += [
            each for each in together.refusals([*others, wanted]) if each.resource == resource.name
        ]
        if found:
            raise Refused(dict.fromkeys(found))

    def made(self, resource_type: str, identity: str, inputs: Properties) -> None:
        """Note what exists from now on."""
        known = self._all()
        with self._lock:
            known[resource_type, identity] = Wanted(resource_type, identity, inputs)

    def gone(self, resource_type: str, identity: str) -> None:
        """Note what exists no longer."""
        known = self._all()
        with self._lock:
            known.pop((resource_type, identity), None)

    def _all(self) -> dict[tuple[str, str], Wanted]:
        with self._lock:
            if self._known is None:
                self._known = {
                    (_TOKENS[kept], identity): Wanted(_TOKENS[kept], identity, state)
                    for kept, identity, state in self._store.everything()
                    if kept in _TOKENS
                }
            return self._known
