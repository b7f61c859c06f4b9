"""Decides whether an expression over metric names would reach Kafka as it is meant.

Strimzi joins them with commas into one line of Java's properties, of which the reporter makes Java
patterns: a comma ends an expression, a backslash is taken away, and what Java does not read stops
every broker. Sources: Strimzi's metrics reporter (prometheus.metrics.reporter.allowlist, a list),
java.util.Properties, java.util.regex.Pattern.
"""

from __future__ import annotations

import re

from core.errors import one_line

# Groups that Python has and Java has not, and a class inside a class, which they read differently.
_PYTHONS_OWN = re.compile(r"\(\?(?:P|\(|#|[a-z]*[aL])")
_NESTED = re.compile(r"\[\^?\]?[^\]]*\[")
_JAVAS_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")


def expression_problem(expression: str) -> str | None:
    """Say what is wrong with an expression, as a clause with its remedy; None: nothing."""
    if not expression.strip():
        return "an empty expression would let every metric through; name what is meant"
    for character, why in {
        ",": "commas stand between expressions, so that this would be several",
        "\\": "its backslash is taken away on the way to Kafka",
    }.items():
        if character in expression:
            return f"{expression!r} has a {character!r}: {why}; write it without, [0-9] for a digit"
    if re.search(r"\s", expression):
        return f"{expression!r} has a space, which no metric's name has; take it out"
    if _PYTHONS_OWN.search(expression) or _NESTED.search(expression):
        return f"{expression!r} is no expression that Java reads; write it more simply"
    try:
        # Java names a group without Python's P.
        re.compile(_JAVAS_GROUP.sub("(?P<", expression))
    except re.error as error:
        return f"{expression!r} is no regular expression: {one_line(error)}"
    return None
