"""Lists what the models leave out and AWS refuses all the same, each with its source.

Each entry judges one resource; what only several together exceed is in `together`. Messages are
AWS's own where somebody has been shown them, else the sentence of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted

Finder = Callable[[Wanted], Iterator[Refusal]]
EVERY_TYPE = "*"
IAM_QUOTAS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
LAMBDA_QUOTAS = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
SQS_QUOTAS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html"
KIB = 1024


@dataclass(frozen=True, slots=True)
class Refuser:
    """Whose refusal it is: a type, the operation that refuses it, and the error's code."""

    token: str
    operation: str
    code: str


@dataclass(frozen=True, slots=True)
class InputLimit:
    """One limit of AWS's: what it is about, where it stands written, and who looks for it."""

    name: str
    types: tuple[str, ...]
    source: str
    find: Finder


LIMITS: list[InputLimit] = []


def limit(*types: str, source: str) -> Callable[[Finder], Finder]:
    """Enter a limit under its function's name: `@limit("sqs/queue:Queue", source="https://...")`."""

    def enter(find: Finder) -> Finder:
        tokens = tuple(each if each == EVERY_TYPE else f"aws:{each}" for each in types)
        LIMITS.append(InputLimit(find.__name__.replace("_", "-"), tokens, source, find))
        return find

    return enter


def enter_line(of: Refuser, path: str, source: str, wrong: Callable[[Any], str]) -> None:
    """Enter a line of a table: `wrong` says AWS's message of a value at a path, or nothing."""

    def find(wanted: Wanted) -> Iterator[Refusal]:
        for value in values(wanted.inputs, path):
            if message := wrong(value):
                yield Refusal(of.operation, of.code, message, path.partition(".")[0])

    name = f"{path}-of-{of.token.partition(':')[2]}"
    LIMITS.append(InputLimit(name, (f"aws:{of.token}",), source, find))


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the limits of a resource's type refuse of it."""
    for each in LIMITS:
        if wanted.type in each.types or EVERY_TYPE in each.types:
            yield from each.find(wanted)


def first_of(operation: str, code: str, *problems: tuple[object, str, str]) -> Iterator[Refusal]:
    """Yield the first that holds of (what is wrong, AWS's message, the input it is about)."""
    for wrong, message, at in problems:
        if wrong:
            yield Refusal(operation, code, message, at)
            return


def first_about(
    operation: str, code: str, at: str, *problems: tuple[object, str]
) -> Iterator[Refusal]:
    """Yield the first that holds of (what is wrong, AWS's message), all about one input."""
    yield from first_of(operation, code, *((wrong, said, at) for wrong, said in problems))


def outside(value: Any, least: float, most: float) -> bool:
    """Say whether a number that is given is none of a range."""
    return value is not None and not least <= float(value) <= most
