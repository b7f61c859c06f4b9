"""`pulumi-resource-aws` of the twin: the program's AWS resources, in moto and in a store.

What another part of the twin reads through an AWS API (groups, instances, queues, functions) is
made in moto by an adapter. Everything a program set is also stored, and wins on read, because moto
accepts and forgets many settings; a type without an adapter is only stored.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Mapping
from importlib.metadata import version

import local.pulumi
from local.place import Place
from local.pulumi.aws_adapter import ADAPTERS, Adapter, Aws, missing
from local.pulumi.aws_invokes import answer
from local.pulumi.aws_rows import STORED
from local.pulumi.provider import (
    Existing,
    Resource,
    State,
    UpdateDifference,
    changes,
    main,
)
from local.refusals import calls, changing, gate, neighbours
from local.refusals.gate import DRAWN_CHARACTERS, drawn_name
from local.refusals.refusal import Refused, Wanted
from local.store import ResourceStore, folder
from local.values import UNKNOWN, Properties, has_unknown

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
        found = list(changing.refusals(before, after))
        if found:
            raise Refused(found)

    def leave(self, resource: Resource, inputs: Properties, identity: str) -> None:
        """Raise Refused where AWS would not delete, because of protection or of what holds it."""
        others = self._others(resource.type, identity)
        found = list(changing.deletion_refusals(Wanted(resource.type, identity, inputs), others))
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


# Importing a module registers its adapters; this one runs as a program, and would be there twice.
for found in pkgutil.iter_modules(local.pulumi.__path__):
    if found.name.startswith("aws_") and found.name != "aws_provider":
        importlib.import_module(f"{local.pulumi.__name__}.{found.name}")


def adapter_of(resource_type: str) -> Adapter:
    return ADAPTERS.get(resource_type, STORED)


class AwsProvider:
    """Resources of pulumi-aws."""

    package = "aws"

    def __init__(self, aws: Aws, store: ResourceStore) -> None:
        self.version = version("pulumi-aws")
        self.aws = aws
        self.store = store
        self.gate = RefusalGate(store)

    def configure(self, settings: Properties) -> None:
        """Take the region and the default tags; keys and endpoints come from the environment."""
        self.aws.region = settings.get("region") or self.aws.region
        default_tags = settings.get("defaultTags")
        if isinstance(default_tags, Mapping):
            tags = default_tags.get("tags") or {}
            self.aws.default_tags = {str(key): str(value) for key, value in tags.items()}

    def check(
        self, resource: Resource, old_inputs: Properties, new_inputs: Properties
    ) -> Properties:
        """Name what the program left unnamed, and lay its tags over the default tags."""
        inputs = dict(new_inputs)
        named = adapter_of(resource.type).name_property
        if named and inputs.get(named) is None:
            prefix = inputs.get("namePrefix") or inputs.get(f"{named}Prefix")
            inputs[named] = old_inputs.get(named) or (
                drawn_name(prefix, resource.token(DRAWN_CHARACTERS), inputs)
                if prefix
                else f"{resource.name}-{resource.token(7)}"
            )
        tags = inputs.get("tags")
        if has_unknown(tags) and not isinstance(tags, Mapping):
            inputs["tagsAll"] = UNKNOWN
        elif isinstance(tags, Mapping) or (tags is None and self.aws.default_tags):
            inputs["tagsAll"] = {**self._default_tags(inputs), **(tags or {})}
        return inputs

    @staticmethod
    def _without_drawn_prefix(resource: Resource, inputs: Properties) -> Properties:
        """Return the inputs without a prefix that `check` has drawn the name from."""
        named = adapter_of(resource.type).name_property
        drawn = {
            key
            for key in ("namePrefix", f"{named}Prefix")
            if named and inputs.get(key)
            if inputs.get(named)
            == drawn_name(inputs[key], resource.token(DRAWN_CHARACTERS), inputs)
        }
        return {key: value for key, value in inputs.items() if key not in drawn}

    def _default_tags(self, inputs: Properties) -> dict[str, str]:
        """Return the provider's default tags, or what a resource has in their place."""
        override = inputs.get("overrideProvider")
        if isinstance(override, Mapping) and isinstance(override.get("defaultTags"), Mapping):
            return dict(override["defaultTags"].get("tags") or {})
        return self.aws.default_tags

    def diff(self, existing: Existing, new_inputs: Properties) -> UpdateDifference:
        """Compare with what AWS would answer; a replacement of the same name waits for the name."""
        kind = existing.resource.type
        adapter = adapter_of(kind)
        named = adapter.name_property
        there = changing.as_answered(kind, existing.inputs, self.aws.account)
        replacing = adapter.replaces | changing.replacing(kind)
        found = changes(there, new_inputs, replacing={*replacing, named} if named else replacing)
        same_name = named is not None and existing.inputs.get(named) == new_inputs.get(named)
        return UpdateDifference(found, delete_before_replace=same_name)

    def create(self, resource: Resource, inputs: Properties) -> State:
        self.gate.judge(resource, self._without_drawn_prefix(resource, inputs))
        made = adapter_of(resource.type).create(self.aws, resource, inputs)
        outputs = {"region": self.aws.region, **inputs, **made.outputs}
        self.store.put(resource.type, made.id, outputs)
        self.gate.note_made(resource.type, made.id, inputs)
        return State(made.id, outputs)

    def preview_create(self, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        return State("", inputs)

    def read(self, existing: Existing) -> State | None:
        """Return the stored state with what moto knows of it now; nothing when it is gone."""
        stored = self.store.get(existing.resource.type, existing.id)
        if stored is None:
            return None
        try:
            now = adapter_of(existing.resource.type).read(self.aws, existing)
        except Exception as error:
            if missing(error):
                return None
            raise
        if now is None:
            return None
        return State(existing.id, {**stored, **now}, existing.inputs or stored)

    def update(self, existing: Existing, new_inputs: Properties) -> Properties:
        adapter = adapter_of(existing.resource.type)
        said = self._without_drawn_prefix(existing.resource, adapter.sent(existing, new_inputs))
        self.gate.judge(existing.resource, said, existing.id)
        self.gate.change(existing.resource, existing.inputs, new_inputs)
        fresh = adapter.update(self.aws, existing, new_inputs)
        outputs = {**self._computed_outputs(existing), **new_inputs, **fresh}
        self.store.put(existing.resource.type, existing.id, outputs)
        self.gate.note_made(existing.resource.type, existing.id, new_inputs)
        return outputs

    def preview_update(self, existing: Existing, new_inputs: Properties) -> Properties:
        return {**self._computed_outputs(existing), **new_inputs}

    @staticmethod
    def _computed_outputs(existing: Existing) -> Properties:
        """Return the computed outputs of the last update, without inputs that may be gone now."""
        return {k: v for k, v in existing.outputs.items() if k not in existing.inputs}

    def delete(self, existing: Existing) -> None:
        self.gate.leave(existing.resource, existing.inputs, existing.id)
        try:
            adapter_of(existing.resource.type).delete(self.aws, existing)
        except Exception as error:
            if not missing(error):
                raise
        self.store.remove(existing.resource.type, existing.id)
        self.gate.note_gone(existing.resource.type, existing.id)

    def invoke(self, token: str, arguments: Properties) -> Properties:
        return answer(self.aws, token, arguments)


if __name__ == "__main__":
    twin = Place.load()
    main(AwsProvider(Aws(twin), ResourceStore(twin.path("store"))))
