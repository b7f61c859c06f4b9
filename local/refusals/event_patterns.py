"""EventBridge's patterns: how long, and what each way of matching takes.

Source of the words: event-ruler, which EventBridge matches with (RuleCompiler).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.refusals.cidrs import network
from local.refusals.documents import parse, text
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

PATTERN_CHARACTERS = 2_048
LARGEST_NUMBER = 5e9
# EventBridge user guide, "Using $or matching": what a pattern is multiplied out to.
COMBINATIONS = 1_000
TEXTS = ("prefix", "suffix", "equals-ignore-case", "wildcard", "cidr")


@limit(
    "cloudwatch/eventRule:EventRule",
    source="https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
)
def event_pattern(wanted: Wanted) -> Iterator[Refusal]:
    """2,048 characters; every leaf of it is a list of what can be matched."""
    pattern = wanted.inputs.get("eventPattern")
    if pattern is None:
        return
    document = parse(pattern)
    if len(text(pattern)) > PATTERN_CHARACTERS:
        wrong = "Event pattern exceeds the maximum size"
    elif document is None:
        wrong = "Filter is not an object"
    else:
        wrong = wrong_pattern(document)
        if not wrong and _combinations(document) > COMBINATIONS:
            wrong = f"Rule is complicated: $or makes more than {COMBINATIONS} combinations of it"
    if wrong:
        message = f"Event pattern is not valid. Reason: {wrong}"
        yield Refusal("PutRule", "InvalidEventPatternException", message, "eventPattern")


def _combinations(pattern: Any) -> int:
    """Return how many patterns without $or a pattern stands for."""
    if not isinstance(pattern, dict):
        return 1
    rest = math.prod(_combinations(value) for key, value in pattern.items() if key != "$or")
    alternatives = pattern.get("$or")
    if isinstance(alternatives, list):
        return rest * sum(map(_combinations, alternatives))
    return rest * _combinations(alternatives)


def wrong_pattern(pattern: Any) -> str:
    """Return what is wrong with a pattern, or nothing."""
    if isinstance(pattern, dict):
        if not pattern:
            return "Empty objects are not allowed"
        alternatives = pattern.get("$or")
        if alternatives is not None and isinstance(alternatives, list) and len(alternatives) < 2:
            return "There must be have at least 2 Objects in $or relationship."
        if isinstance(alternatives, list) and all(isinstance(e, dict) for e in alternatives):
            rest = {key: value for key, value in pattern.items() if key != "$or"}
            return _first([*alternatives, *rest.values()])
        return _first(pattern.values())
    if not isinstance(pattern, list) or not pattern:
        return "a value must be an object or an array"
    return next((wrong for leaf in pattern if (wrong := _wrong_leaf(leaf))), "")


def _first(parts: Any) -> str:
    return next((wrong for each in parts if (wrong := wrong_pattern(each))), "")


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
    """Return what is wrong with one way of matching and what it is given."""
    judged = _JUDGED.get(match)
    return f"Unrecognized match type {match}" if judged is None else judged(value)


def _of_existence(value: Any) -> str:
    right = isinstance(value, bool)
    return "" if right else "exists match pattern must be either true or false."


def _of_text(match: str) -> Callable[[Any], str]:
    def judged(value: Any) -> str:
        return "" if isinstance(value, str) else f"{match} match pattern must be a string"

    return judged


def _of_an_end(match: str) -> Callable[[Any], str]:
    def judged(value: Any) -> str:
        return _without_case(match, value) if isinstance(value, dict) else _of_text(match)(value)

    return judged


def _of_a_block(value: Any) -> str:
    return _of_text("cidr")(value) or (
        "" if "/" in value and network(value) else "Malformed CIDR, one '/' required"
    )


def _of_a_pattern(value: Any) -> str:
    return _of_text("wildcard")(value) or _of_wildcards(value)


def _without_case(match: str, value: dict[str, Any]) -> str:
    """A beginning or an end may be of whatever case, and nothing else."""
    if set(value) != {"equals-ignore-case"}:
        return (
            f"Unsupported {match} pattern: {''.join(sorted(set(value) - {'equals-ignore-case'}))}"
        )
    inside = value["equals-ignore-case"]
    return "" if isinstance(inside, str) else "equals-ignore-case match pattern must be a string"


def _of_wildcards(value: str) -> str:
    """A star after a star is refused, and a backslash is followed by a star or a backslash."""
    at = 0
    while at < len(value):
        if value[at] == "\\":
            if value[at + 1 : at + 2] not in {"*", "\\"}:
                return f"Invalid escape character at pos {at}"
            at += 1
        elif value[at : at + 2] == "**":
            return f"Consecutive wildcard characters at pos {at}"
        at += 1
    return ""


_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_numbers(value: Any) -> str:
    """An operator with a number, or two that bound a range from below and from above."""
    if not isinstance(value, list) or not value:
        return "Value of numeric must be an array."
    operators, numbers = value[::2], value[1::2]
    known = all(isinstance(each, str) and each in _COMPARISONS for each in operators)
    if len(value) not in {2, 4} or not known:
        return "Invalid numeric comparison."
    if not all(_is_number(each) and abs(each) <= LARGEST_NUMBER for each in numbers):
        return f"Value of {operators[0]} must be numeric"
    if len(operators) == 1:
        return ""
    upward = operators[0] in {">", ">="} and operators[1] in {"<", "<="}
    return "" if upward and numbers[0] < numbers[1] else "Bottom must be less than top"


def _judge_excluded(value: Any) -> str:
    """Texts, or numbers; or one way of matching with texts of it."""
    if isinstance(value, dict):
        return _excluded_way(value)
    many = value if isinstance(value, list) else [value]
    kinds = {"text" if isinstance(e, str) else "number" if _is_number(e) else "?" for e in many}
    if "?" in kinds or not kinds:
        return "Value of anything-but must be an array or single string/number value."
    mixed = len(kinds) > 1
    return "Inside anything but list, either all values are number or string" if mixed else ""


def _excluded_way(value: dict[str, Any]) -> str:
    if len(value) != 1:
        return "Only one key allowed in match expression"
    ((match, inside),) = value.items()
    many = inside if isinstance(inside, list) else [inside]
    problems = (
        (match not in {*TEXTS} - {"cidr"}, f"Unsupported anything-but pattern: {match}"),
        (
            not many or not all(isinstance(each, str) for each in many),
            f"{match} match pattern must be a string",
        ),
        (match in {"prefix", "suffix"} and "" in many, "Null prefix/suffix not allowed"),
    )
    found = next((said for wrong, said in problems if wrong), "")
    if found or match != "wildcard":
        return found
    return next((wrong for each in many if (wrong := _of_wildcards(each))), "")


_JUDGED: Mapping[str, Callable[[Any], str]] = {
    "anything-but": _judge_excluded,
    "cidr": _of_a_block,
    "equals-ignore-case": _of_text("equals-ignore-case"),
    "exists": _of_existence,
    "numeric": _of_numbers,
    "prefix": _of_an_end("prefix"),
    "suffix": _of_an_end("suffix"),
    "wildcard": _of_a_pattern,
}
