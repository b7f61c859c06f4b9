"""EventBridge's patterns: how long, and what each way of matching takes.

Source of the words: event-ruler, which EventBridge matches with (RuleCompiler).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from local.refusals.documents import parsed, text
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

PATTERN_CHARACTERS = 2_048
TEXTS = ("prefix", "suffix", "equals-ignore-case", "wildcard", "cidr")
MATCHES = frozenset({*TEXTS, "anything-but", "numeric", "exists"})


@limit(
    "cloudwatch/eventRule:EventRule",
    source="https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
)
def event_pattern(wanted: Wanted) -> Iterator[Refusal]:
    """2,048 characters; every leaf of it is a list of what can be matched."""
    pattern = wanted.inputs.get("eventPattern")
    if pattern is None:
        return
    document = parsed(pattern)
    if len(text(pattern)) > PATTERN_CHARACTERS:
        wrong = "Event pattern exceeds the maximum size"
    elif document is None:
        wrong = "Filter is not an object"
    else:
        wrong = _wrong(document)
    if wrong:
        message = f"Event pattern is not valid. Reason: {wrong}"
        yield Refusal("PutRule", "InvalidEventPatternException", message, "eventPattern")


def _wrong(pattern: Any) -> str:
    """Return what is wrong with a pattern, or nothing."""
    if isinstance(pattern, dict):
        if not pattern:
            return "Empty objects are not allowed"
        alternatives = pattern.get("$or")
        if isinstance(alternatives, list) and all(isinstance(e, dict) for e in alternatives):
            rest = {key: value for key, value in pattern.items() if key != "$or"}
            return _first([*alternatives, *rest.values()])
        return _first(pattern.values())
    if not isinstance(pattern, list) or not pattern:
        return "a value must be an object or an array"
    return next((wrong for leaf in pattern if (wrong := _wrong_leaf(leaf))), "")


def _first(parts: Any) -> str:
    return next((wrong for each in parts if (wrong := _wrong(each))), "")


def _wrong_leaf(leaf: Any) -> str:
    if isinstance(leaf, list):
        return "Match value must be String, number, true, false, or null"
    if not isinstance(leaf, dict):
        return ""
    if len(leaf) != 1:
        return "Only one key allowed in match expression"
    ((match, value),) = leaf.items()
    return _wrong_match(match, value)


def _wrong_match(match: str, value: Any) -> str:
    problems = (
        (match not in MATCHES, f"Unrecognized match type {match}"),
        (
            match == "exists" and not isinstance(value, bool),
            "exists match pattern must be either true or false.",
        ),
        (
            match == "numeric" and not (isinstance(value, list) and value),
            "Value of numeric must be an array.",
        ),
        (
            match in TEXTS and not isinstance(value, str | dict),
            f"{match} match pattern must be a string",
        ),
        (
            match == "wildcard" and "**" in str(value),
            f"Consecutive wildcard characters at pos {str(value).find('**')}",
        ),
    )
    return next((said for wrong, said in problems if wrong), "")
