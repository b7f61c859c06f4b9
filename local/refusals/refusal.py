"""One refusal, in AWS's words, and the resource it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.ground.errors import StillwaterError


@dataclass(frozen=True, slots=True)
class Wanted:
    """One resource as the engine would ask for it: its type's token, its name, its inputs."""

    type: str
    name: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tags(self) -> dict[str, str]:
        """What AWS is sent as tags: the provider's default tags with the resource's own."""
        everything = self.inputs.get("tagsAll")
        given = self.inputs.get("tags") if everything is None else everything
        if isinstance(given, list):
            return {str(tag["key"]): str(tag["value"]) for tag in given}
        return {str(key): str(value) for key, value in (given or {}).items()}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What AWS would answer: the operation, the error's code, and its message."""

    operation: str
    code: str
    message: str
    # A property of the resource, in the program's spelling; empty: the resource as a whole.
    at: str = ""
    resource: str = ""

    @property
    def sentence(self) -> str:
        where = f" for {self.resource}" if self.resource else ""
        return f"AWS refused {self.operation}{where} ({self.code}): {self.message}"


class Refused(StillwaterError):
    """What AWS would not have made."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__(" ".join(refusal.sentence for refusal in self.refusals))
