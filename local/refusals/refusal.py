"""One refusal, in AWS's words, the resource it is about, and the limits that no model states.

Each limit judges one resource and has its source; what only several together exceed is in
`neighbours`. Messages are AWS's own where somebody has been shown them, else the sentence of the
documentation.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
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


@functools.cache
def _rows() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("said.toml").read_text())


def said(name: str, *given: object, resource: str = "") -> Refusal:
    """Return a row of said.toml as a refusal, with what is given for its {0}, {1} and so on."""
    row = _rows()[name]
    message = row["says"].format(*given)
    return Refusal(row["operation"], row["code"], message, row.get("at", ""), resource)


class Refused(StillwaterError):
    """What AWS would not have made."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__(" ".join(refusal.sentence for refusal in self.refusals))


Finder = Callable[[Wanted], Iterator[Refusal]]
EVERY_TYPE = "*"
IAM_QUOTAS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
LAMBDA_QUOTAS = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
KIB = 1024


@dataclass(frozen=True, slots=True)
class InputLimit:
    """One limit of AWS's: what it is about, where it stands written, and who looks for it."""

    types: tuple[str, ...]
    source: str
    find: Finder


LIMITS: list[InputLimit] = []


def limit(*types: str, source: str) -> Callable[[Finder], Finder]:
    """Enter a limit: `@limit("sqs/queue:Queue", source="https://...")`."""

    def enter(find: Finder) -> Finder:
        tokens = tuple(each if each == EVERY_TYPE else f"aws:{each}" for each in types)
        LIMITS.append(InputLimit(tokens, source, find))
        return find

    return enter


def limit_refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the limits of a resource's type refuse of it."""
    for each in LIMITS:
        if wanted.type in each.types or EVERY_TYPE in each.types:
            yield from each.find(wanted)
