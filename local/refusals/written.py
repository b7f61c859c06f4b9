"""Judges an input by what the provider's documentation says of it: words, numbers, lengths.

A rule is read only out of a sentence that says nothing else: a list of words and what joins them,
two numbers and their unit. What stands beside an "include", an "e.g." or a condition is no rule.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Read literally these say less than AWS takes, or mean something else: input -> why.
MISREAD: Mapping[str, str] = {
    "encrypted": "a snapshot may be encrypted at launch",
    "operations": "KMS's model knows those of MACs as well",
    "protocol": "a subscription may be by e-mail and HTTP as well",
    "terminationPolicies": "a function's ARN as well",
}
_SENTENCE = re.compile(r"(?:`[^`]*`|[^.`]|\.(?=\S))+")
_ANNOUNCED = re.compile(
    r"(?:\b(?:valid|possible|allowed|supported|permitted|accepted)\s+(?:current\s+)?"
    r"(?:values?|options?)\s*(?:are|is|:)?|\bmust be one of|\bshould be one of|\bone of:|"
    r"\bthe following values are supported:|\bthe value is)(?P<rest>.*)",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"\be\.g|such as|includ|for example|\bfor [A-Z`]|\bX+\b", re.IGNORECASE)
_JOINERS = re.compile(
    r"\([^()]*\)|\b(?:and|or|either|default|defaults? to|the)\b|[\s,:;\"]", re.IGNORECASE
)
_CITED = re.compile(r"`([^`]*)`")
_NUMBER = r"`?(-?\d[\d,]*)`?(?:\s*\([^()]*\))?"
_RANGE = re.compile(
    rf"\b(?:between|from|range is|ranges? from|range of)\s*:?\s*{_NUMBER}"
    rf"\s*(?:-|\u2013|to|and|up to)\s*{_NUMBER}|`(\d+)-(\d+)`",
    re.IGNORECASE,
)
_STEP = re.compile(r"in increments of `?(\d+)")
_ZERO = re.compile(r"(?<![\d.])`?0`?(?![\d.,%])")
_LENGTH = re.compile(
    r"(?:\bcannot be longer than|maximum of|maximum length of|less than or equal to) "
    r"(\d[\d,]*) (?:\w+ )?characters|(\d[\d,]*) characters or (?:less|fewer)",
    re.IGNORECASE,
)
_CONFLICTS = re.compile(r"conflicts with (.*)", re.IGNORECASE)
_ONE_OF = re.compile(
    r"exactly one of (.*?) (?:is|are|must be) (?:required|specified|set)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """What one input's documentation says of its value and of its neighbours."""

    words: frozenset[str]
    # The least and the most, what lies between two values, and whether 0 is taken besides.
    numbers: tuple[int, int, int, bool] | None
    longest: int | None
    excluded: frozenset[str]
    one_of: frozenset[str]


@functools.cache
def rule_of(documentation: str) -> WrittenRule:
    """Return what can be read out of an input's documentation.

    >>> sorted(rule_of("Valid values are `on` and `off` (default).").words)
    ['off', 'on']
    """
    sentences = [each.strip() for each in _SENTENCE.findall(documentation)]
    length = _LENGTH.search(documentation)
    return WrittenRule(
        words=_words(sentences),
        numbers=_numbers(sentences),
        longest=_whole_number(length[1] or length[2]) if length else None,
        excluded=frozenset().union(*(_cited_keys(_CONFLICTS, each) for each in sentences)),
        one_of=frozenset().union(*(_cited_keys(_ONE_OF, each) for each in sentences)),
    )


def _words(sentences: list[str]) -> frozenset[str]:
    announced = [(each, found) for each in sentences if (found := _ANNOUNCED.search(each))]
    if len(announced) != 1:
        return frozenset()
    sentence, found = announced[0]
    words = [each.strip("\"'[]") for each in _CITED.findall(found["rest"])]
    left = _JOINERS.sub("", _CITED.sub("", found["rest"])).strip(".")
    vague = left or _VAGUE.search(sentence) or any("XX" in each for each in words)
    return frozenset(words) if len(words) > 1 and not vague else frozenset()


def _numbers(sentences: list[str]) -> tuple[int, int, int, bool] | None:
    found = [(each, match) for each in sentences for match in _RANGE.finditer(each)]
    if len(found) != 1 or "character" in found[0][0]:
        return None
    sentence, match = found[0]
    least, most = (_whole_number(each) for each in match.groups() if each is not None)
    step = _STEP.search(sentence)
    beside = _ZERO.search(sentence.replace(match[0], ""))
    return least, most, int(step[1]) if step else 1, beside is not None


def _whole_number(written: str) -> int:
    return int(written.replace(",", ""))


def _cited_keys(pattern: re.Pattern[str], sentence: str) -> frozenset[str]:
    found = pattern.search(sentence)
    left = re.sub(r"\b(?:and|or)\b|[\s,.]", "", _CITED.sub("", found[1])) if found else "nothing"
    return frozenset(_CITED.findall(found[1])) if found and not left else frozenset()


def wrongs(
    path: str, name: str, rule: WrittenRule, given: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with an input of a block by its rule: the code, and the sentence."""
    if path in MISREAD or name in MISREAD or name.startswith("routingHttp"):
        return
    value = given[name]
    for each in value if isinstance(value, list | tuple) else [value]:
        yield from _of_value(path, rule, each)
    for other in rule.excluded:
        rival = _sibling(other, given)
        if rival and value not in ("", [], {}) and rival != name:
            yield "Conflicting configuration arguments", f'"{path}": conflicts with {rival}'
    if len(rule.one_of) > 1 and name in map(_camel, rule.one_of):
        rivals = [each for each in rule.one_of if _sibling(each, given)]
        if len(rivals) > 1:
            message = f"{path}: only one of {', '.join(sorted(rivals))} can be specified"
            yield "Invalid combination of arguments", message


def _of_value(path: str, rule: WrittenRule, value: Any) -> Iterator[tuple[str, str]]:
    code = "Invalid Attribute Value"
    if isinstance(value, str):
        if rule.words and value and value not in rule.words:
            yield code, f"expected {path} to be one of {sorted(rule.words)}, got {value[:200]}"
        if rule.longest is not None and len(value) > rule.longest:
            yield code, f"expected length of {path} to be at most {rule.longest}, got {value[:200]}"
    if isinstance(value, int | float) and not isinstance(value, bool) and rule.numbers:
        least, most, step, zero = rule.numbers
        fits = least <= value <= most and (value - least) % step == 0
        if not fits and not (zero and value == 0):
            yield code, f"expected {path} to be in the range ({least} - {most}), got {value}"


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _sibling(name: str, given: Mapping[str, Any]) -> str:
    """Return a neighbour that is given, by the name that the documentation has for it."""
    plain = _camel(name)
    for each in (plain, f"{plain}s", re.sub(r"y$", "ies", plain)):
        if given.get(each) not in (None, "", [], {}):
            return each
    return ""
