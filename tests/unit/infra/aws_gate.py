"""Recorded layers as the gate of local/refusals takes them: what a provider would send to AWS."""

import json
from collections.abc import Mapping

from local.refusals.refusal import Wanted
from tests.unit.infra.recording import Recorded, Resource


def wanted(layers: Mapping[str, Recorded]) -> list[Wanted]:
    """Return every resource of AWS's, with the default tags of its layer's provider."""
    found = []
    for layer in layers.values():
        providers = layer.of("providers:aws")
        default = json.loads(providers[0].inputs["defaultTags"])["tags"] if providers else {}
        found += [_wanted(r, default) for r in layer.resources if r.type.startswith("aws:")]
    return found


def _wanted(resource: Resource, default: Mapping[str, str]) -> Wanted:
    own = resource.inputs.get("tags") or {}
    if isinstance(own, list):
        return Wanted(resource.type, resource.name, resource.inputs)
    override = resource.inputs.get("overrideProvider") or {}
    if "defaultTags" in override:
        default = override["defaultTags"].get("tags") or {}
    return Wanted(resource.type, resource.name, {**resource.inputs, "tagsAll": {**default, **own}})
