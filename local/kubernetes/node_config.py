"""Reads what an instance's user data asks of its kubelet: nodeadm's NodeConfig, as on AL2023.

The launch template is where labels and taints of a Kafka node come from, so the twin takes them
from the same bytes the real AMI would.
"""

from __future__ import annotations

import email
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from core.ground.errors import InvalidInput

NODE_CONFIG_GROUP = "node.eks.aws/"
NODE_CONFIG_MEDIA_TYPE = "application/node.eks.aws"
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SECONDS_PER_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|us|ns|s)")


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str

    def as_json(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What user data decides about a node; the defaults are those of an empty NodeConfig."""

    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int | None = None
    shutdown_grace_seconds: float = 0.0


def parse(user_data: str) -> NodeConfig:
    """Read every NodeConfig of plain or MIME multi-part user data; later ones win.

    Raises InvalidInput with one sentence per problem: nodeadm would not join such a node.
    """
    problems: list[str] = []
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    max_pods: int | None = None
    shutdown_grace_seconds = 0.0
    for document in _documents(user_data, problems):
        kubelet = (document.get("spec") or {}).get("kubelet") or {}
        config = kubelet.get("config") or {}
        for flag in kubelet.get("flags") or []:
            name, _, value = str(flag).partition("=")
            if name == "--node-labels":
                labels.update(_labels(value, problems))
            elif name == "--register-with-taints":
                taints.extend(_taints(value, problems))
        taints.extend(
            Taint(str(t["key"]), str(t.get("value", "")), str(t["effect"]))
            for t in config.get("registerWithTaints") or []
        )
        max_pods = config.get("maxPods", max_pods)
        if "shutdownGracePeriod" in config:
            shutdown_grace_seconds = _seconds(str(config["shutdownGracePeriod"]), problems)
    if problems:
        raise InvalidInput(problems)
    return NodeConfig(
        labels=labels,
        taints=tuple(taints),
        max_pods=max_pods,
        shutdown_grace_seconds=shutdown_grace_seconds,
    )


def _documents(user_data: str, problems: list[str]) -> list[dict[str, Any]]:
    found = []
    for text in _texts(user_data):
        try:
            documents = list(yaml.safe_load_all(text))
        except yaml.YAMLError as error:
            problems.append(f"The user data's NodeConfig is not YAML: {error}.")
            continue
        found += [
            document
            for document in documents
            if isinstance(document, dict)
            and str(document.get("apiVersion", "")).startswith(NODE_CONFIG_GROUP)
        ]
    return found


def _texts(user_data: str) -> list[str]:
    """Return the texts that may hold a NodeConfig; shell scripts and boot hooks are not read."""
    if "multipart/" not in user_data[:500]:
        return [] if user_data.startswith("#!") else [user_data]
    message = email.message_from_string(user_data.lstrip())
    texts = []
    for part in message.walk():
        if part.get_content_type() == NODE_CONFIG_MEDIA_TYPE:
            payload = part.get_payload(decode=True)
            texts.append(payload.decode() if isinstance(payload, bytes) else "")
    return texts


def _labels(value: str, problems: list[str]) -> dict[str, str]:
    labels = {}
    for pair in filter(None, value.split(",")):
        key, separator, text = pair.partition("=")
        if not separator or not key:
            problems.append(f"--node-labels holds {pair!r}; write each label as key=value.")
            continue
        labels[key] = text
    return labels


def _taints(value: str, problems: list[str]) -> list[Taint]:
    taints = []
    for entry in filter(None, value.split(",")):
        pair, _, effect = entry.rpartition(":")
        key, _, text = pair.partition("=")
        if not key or effect not in TAINT_EFFECTS:
            problems.append(
                f"--register-with-taints holds {entry!r}; write each taint as key=value:effect "
                f"with one of the effects {', '.join(TAINT_EFFECTS)}."
            )
            continue
        taints.append(Taint(key, text, effect))
    return taints


def _seconds(duration: str, problems: list[str]) -> float:
    """Return the seconds of a Go duration: 1m30s -> 90."""
    parts = DURATION_PART.findall(duration)
    if duration != "0" and "".join(number + unit for number, unit in parts) != duration:
        problems.append(f"shutdownGracePeriod is {duration!r}; write a duration such as 1m30s.")
        return 0.0
    return float(sum(float(number) * SECONDS_PER_UNIT[unit] for number, unit in parts))
