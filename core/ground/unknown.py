"""Holds what is not known in the place of an answer: why, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part nothing is known of, why, and what to do about it where that is no missing right."""

    why: str
    remedy: str = ""


def known_items(part: Iterable[T] | Unknown) -> tuple[T, ...]:
    """Return what is known of a part: nothing where it could not be read."""
    return () if isinstance(part, Unknown) else tuple(part)


def entry(part: Mapping[str, V | Unknown] | Unknown, name: str) -> V | Unknown:
    """Return one entry of a part, or why it is not known."""
    return part if isinstance(part, Unknown) else part.get(name, Unknown("nobody read it"))


def mapping_of(part: Mapping[str, V] | Unknown) -> Mapping[str, V]:
    """Return what is known of a part by its names: nothing where it could not be read."""
    return {} if isinstance(part, Unknown) else part
