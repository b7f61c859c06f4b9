"""Decides what a selector of Kubernetes' matches: pods, nodes, what a NodePool starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        if self.operator in {"Gt", "Lt"}:
            return value is not None and self._compares(value)
        return (value is not None) == (self.operator == "Exists")

    def _compares(self, value: str) -> bool:
        given, limit = int(value), int(next(iter(self.values)))
        return given > limit if self.operator == "Gt" else given < limit


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
