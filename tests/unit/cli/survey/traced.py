"""Objects of Kubernetes that note which of their fields a reader asks for."""

from __future__ import annotations

from typing import Any


class Traced(dict[str, Any]):
    """A mapping that adds the path of each field that is asked for to a set: spec.volumes."""

    def __init__(self, item: dict[str, Any], asked: set[str], path: str = "") -> None:
        super().__init__(item)
        self._asked, self._path = asked, path

    def __getitem__(self, key: str) -> Any:
        self._asked.add(f"{self._path}{key}")
        return _traced(super().__getitem__(key), self._asked, f"{self._path}{key}.")

    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key, default)
        self._asked.add(f"{self._path}{key}")
        return _traced(found, self._asked, f"{self._path}{key}.")

    def __contains__(self, key: object) -> bool:
        self._asked.add(f"{self._path}{key}")
        return super().__contains__(key)


def _traced(value: Any, asked: set[str], path: str) -> Any:
    if isinstance(value, dict):
        return Traced(value, asked, path)
    return [_traced(each, asked, path) for each in value] if isinstance(value, list) else value
