"""A container's environment and command line, from its pod's spec: what `env` and $(VAR) mean.

Source: the pod API and its expansion rules (kubernetes/third_party/forked/golang/expansion).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from core.ground.errors import StillwaterError
from local.kubernetes.client import Object

REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

# (kind, name) -> the object in the pod's namespace, or None when there is none.
Lookup = Callable[[str, str], Object | None]


class MissingReference(StillwaterError):
    """A ConfigMap, Secret or key that a container needs does not exist (yet)."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; $$ stands for one $, unknown names stay as written."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group(0))

    return REFERENCE.sub(replacement, text)


def command_line(container: Object, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return a container's (command, args) with references replaced."""
    return (
        [expand(part, variables) for part in container.get("command") or []],
        [expand(part, variables) for part in container.get("args") or []],
    )


def field_value(pod: Object, path: str, *, pod_ip: str, host_ip: str) -> str:
    """Return the value of a fieldRef."""
    subscript = SUBSCRIPT.fullmatch(path)
    if subscript:
        entries = pod["metadata"].get(subscript.group(1)) or {}
        return str(entries.get(subscript.group(2), ""))
    match path:
        case "status.podIP" | "status.podIPs":
            return pod_ip
        case "status.hostIP" | "status.hostIPs":
            return host_ip
        case "spec.serviceAccountName":
            return str(pod["spec"].get("serviceAccountName") or "default")
        case "metadata.name" | "metadata.namespace" | "metadata.uid" | "spec.nodeName":
            section, _, name = path.partition(".")
            return str(pod[section][name])
        case "metadata.labels" | "metadata.annotations":
            entries = pod["metadata"].get(path.partition(".")[2]) or {}
            return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
    raise MissingReference(f"The pod refers to its field {path}, which the twin does not know.")


def data_of(item: Object) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret."""
    if item.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (item.get("data") or {}).items()}
    plain = {key: str(value).encode() for key, value in (item.get("data") or {}).items()}
    binary = {key: base64.b64decode(value) for key, value in (item.get("binaryData") or {}).items()}
    return plain | binary


def resolve(
    pod: Object,
    container: Object,
    *,
    pod_ip: str,
    host_ip: str,
    base: Mapping[str, str],
    lookup: Lookup,
) -> dict[str, str]:
    """Return a container's environment: `base`, then envFrom, then env, later ones winning.

    Raises MissingReference for what must exist and does not.
    """
    variables = dict(base)
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix") or ""
        for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            if key in source:
                found = _referred_data(kind, source[key], lookup)
                variables |= {prefix + k: v.decode() for k, v in found.items()}
    for entry in container.get("env") or []:
        value = _value(entry, pod, variables, pod_ip=pod_ip, host_ip=host_ip, lookup=lookup)
        if value is not None:
            variables[entry["name"]] = value
    return variables


def _value(
    entry: Mapping[str, Any],
    pod: Object,
    variables: Mapping[str, str],
    *,
    pod_ip: str,
    host_ip: str,
    lookup: Lookup,
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(str(entry.get("value") or ""), variables)
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], pod_ip=pod_ip, host_ip=host_ip)
    for kind, key in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if key in source:
            reference = source[key]
            found = _referred_data(kind, reference, lookup)
            if reference["key"] in found:
                return found[reference["key"]].decode()
            if reference.get("optional"):
                return None
            raise MissingReference(
                f"{kind} {reference['name']} has no key {reference['key']}, which the variable "
                f"{entry['name']} needs."
            )
    raise MissingReference(
        f"The variable {entry['name']} takes its value from {', '.join(source)}, which the twin "
        f"does not know."
    )


def _referred_data(kind: str, reference: Mapping[str, Any], lookup: Lookup) -> dict[str, bytes]:
    item = lookup(kind, reference["name"])
    if item is not None:
        return data_of({"kind": kind, **item})
    if reference.get("optional"):
        return {}
    raise MissingReference(f"{kind} {reference['name']} does not exist.")
