"""Judges a statement's conditions against a request's context: pure.

Source: IAM user guide, "IAM JSON policy elements: Condition operators" and "Multivalued context
keys". An operator this file does not know is an error, never a condition that holds.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from core.ground.errors import InvalidInput

# Key in lower case (IAM ignores a key's case) -> its values.
Context = Mapping[str, Sequence[str]]
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
# What stands for itself, from ${*} or a variable's value: written so that no pattern takes it for
# a wildcard.
_LITERALS = {"*": "\ue000", "?": "\ue001"}
_PLAIN = str.maketrans({written: text for text, written in _LITERALS.items()})
_WRITTEN = str.maketrans(_LITERALS)
_FOR_ALL, _FOR_ANY, _IF_EXISTS = "ForAllValues:", "ForAnyValue:", "IfExists"


@lru_cache(maxsize=4096)
def _pattern(text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    parts = [{"*": ".*", "?": "."}.get(c) or re.escape(c.translate(_PLAIN)) for c in text]
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def like(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    """Say whether a value has the form of a pattern with `*` and `?`.

    >>> like("arn:aws:sqs:*:*:orders-?", "arn:aws:sqs:us-east-1:123456789012:orders-7")
    True
    """
    return _pattern(pattern, ignore_case=ignore_case).fullmatch(value) is not None


def arn_like(pattern: str, value: str) -> bool:
    """Compare two ARNs part by part: a `*` does not reach over a colon but in the last part.

    >>> arn_like("arn:aws:sqs:*:orders", "arn:aws:sqs:us-east-1:123456789012:orders")
    False
    >>> arn_like("arn:aws:sqs:*", "arn:aws:sqs:us-east-1:123456789012:orders")
    True
    """
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), value.split(":", 5)
    if wanted[-1].endswith("*"):
        # An ARN that ends early goes on with anything.
        wanted += ["*"] * (len(given) - len(wanted))
    return len(wanted) == len(given) and all(map(like, wanted, given))


def substitute(text: str, context: Context) -> str | None:
    """Return a policy's text with its variables filled in; None: one of them has no value."""
    missing = False

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        name, comma, default = found.group(1).partition(",")
        if name in ("*", "?", "$"):
            return name.translate(_WRITTEN)
        values = context.get(name.strip().lower(), ())
        if len(values) == 1:
            return values[0].translate(_WRITTEN)
        if comma:
            return default.strip().strip("'").translate(_WRITTEN)
        missing = True
        return ""

    filled = _VARIABLE.sub(value, text)
    return None if missing else filled


def _moment(text: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    moment = dt.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def _measured(
    read: Callable[[str], float], compare: Callable[[float, float], bool]
) -> Callable[[str, str], bool]:
    def matches(wanted: str, given: str) -> bool:
        try:
            return compare(read(given), read(wanted))
        except ValueError:
            return False

    return matches


def _in_network(wanted: str, given: str) -> bool:
    try:
        return ipaddress.ip_address(given) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return False


_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "Equals": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "LessThanEquals": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanEquals": lambda a, b: a >= b,
}
# What the operator wants and what the request has -> whether they match.
OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda wanted, given: wanted.translate(_PLAIN) == given,
    "StringEqualsIgnoreCase": lambda wanted, given: (
        wanted.translate(_PLAIN).lower() == given.lower()
    ),
    "StringLike": like,
    "ArnEquals": arn_like,
    "ArnLike": arn_like,
    "Bool": lambda wanted, given: wanted.lower() == given.lower(),
    "BinaryEquals": lambda wanted, given: wanted == given,
    "IpAddress": _in_network,
    **{f"Numeric{name}": _measured(float, compare) for name, compare in _COMPARED.items()},
    **{f"Date{name}": _measured(_moment, compare) for name, compare in _COMPARED.items()},
}
# The negation of each: it holds when none of the wanted values matches.
NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NotIpAddress": "IpAddress",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
}


def hold(condition: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    """Say whether every condition of a statement holds; raises InvalidInput for no operator."""
    return all(
        _holds(operator, key, as_list(wanted), context)
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    )


def as_list(value: Any) -> list[str]:
    """Return what a policy writes as one value or as a list of them."""
    values = value if isinstance(value, list) else [value]
    return [str(each).lower() if isinstance(each, bool) else str(each) for each in values]


def _holds(operator: str, key: str, wanted: list[str], context: Context) -> bool:
    given = context.get(key.lower())
    name = operator
    quantifier = next((q for q in (_FOR_ALL, _FOR_ANY) if name.startswith(q)), "")
    name = name.removeprefix(quantifier)
    if name == "Null":
        return (given is None or not list(given)) == (wanted == ["true"])
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    negated = name in NEGATED
    compare = OPERATORS.get(NEGATED.get(name, name))
    if compare is None:
        raise InvalidInput([f"The twin's IAM does not know the condition operator {operator!r}."])
    if not given:
        return if_exists or quantifier == _FOR_ALL or (negated and quantifier != _FOR_ANY)
    texts = [filled for text in wanted if (filled := substitute(text, context)) is not None]

    def matches(value: str) -> bool:
        return any(compare(text, value) for text in texts) != negated

    if quantifier == _FOR_ANY:
        return any(map(matches, given))
    return all(map(matches, given)) if quantifier or negated else any(map(matches, given))
