"""Defines one node of a description as functions are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """One node of the spec: its pool in its zone, and its role."""

    node_id: int
    node_pool: str
    role: Literal["broker", "controller", "combined"]
