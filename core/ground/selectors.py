"""Decides what a selector of Kubernetes' matches: pods, nodes, what a NodePool starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels meet it; one of an operator unknown here may mean anybody."""
        value = labels.get(self.key)
        if self.operator in {"Gt", "Lt"}:
            return value is not None and value.isdecimal() and self._compares(value)
        return {
            "In": value in self.values,
            "NotIn": value not in self.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }.get(self.operator, True)

    def _compares(self, value: str) -> bool:
        given, limit = int(value), int(next(iter(self.values)))
        return given > limit if self.operator == "Gt" else given < limit


def requirements(expressions: Iterable[Mapping[str, Any]] | None) -> tuple[Requirement, ...]:
    """Return expressions as Kubernetes writes them: of a selector, a node's labels or fields."""
    return tuple(
        Requirement(
            key=each["key"],
            operator=each["operator"],
            values=frozenset(each.get("values") or ()),
        )
        for each in expressions or ()
    )


def selects(
    match_labels: Mapping[str, str], expressions: Iterable[Requirement], labels: Mapping[str, str]
) -> bool:
    """Say whether a label selector matches some labels.

    >>> selects({"app": "kafka"}, (), {"app": "kafka", "zone": "a"})
    True
    """
    return all(labels.get(key) == value for key, value in match_labels.items()) and all(
        each.met_by(labels) for each in expressions
    )


def is_selected(labels: Mapping[str, str], selector: Mapping[str, Any] | None) -> bool:
    """Say whether a selector as Kubernetes writes it takes some labels: none at all takes nobody.

    >>> is_selected({"app": "kafka"}, {}), is_selected({"app": "kafka"}, None)
    (True, False)
    """
    return selector is not None and selects(
        selector.get("matchLabels") or {}, requirements(selector.get("matchExpressions")), labels
    )
