"""Lists what the models leave out and AWS refuses all the same, each with its source.

Each entry judges one resource; what only several together exceed is in `neighbours`. Messages are
AWS's own where somebody has been shown them, else the sentence of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from local.refusals.refusal import Refusal, Wanted

Finder = Callable[[Wanted], Iterator[Refusal]]
EVERY_TYPE = "*"
IAM_QUOTAS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
LAMBDA_QUOTAS = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
KIB = 1024


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


def refusals(wanted: Wanted) -> Iterator[Refusal]:
    """Yield what the limits of a resource's type refuse of it."""
    for each in LIMITS:
        if wanted.type in each.types or EVERY_TYPE in each.types:
            yield from each.find(wanted)
