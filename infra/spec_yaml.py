"""Reads YAML and JSON as a description is written, and refuses what reads as something else.

YAML 1.1 makes numbers of `010` (8) and `1:40` (100), truth values of `no` and `on`, and drops the
order of a set. Whatever a reader would not have meant is refused here, with its line and column.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Hashable
from typing import Any

import yaml

# More digits than any setting takes; Python itself refuses to print much longer ones.
MOST_DIGITS = 18
_TAG = "tag:yaml.org,2002:"
_UNORDERED = {f"{_TAG}{name}" for name in ("binary", "omap", "pairs", "set")}
_READ_AS = {
    f"{_TAG}bool": "a truth value",
    f"{_TAG}int": "a number",
    f"{_TAG}float": "a number",
    f"{_TAG}null": "nothing",
    f"{_TAG}timestamp": "a date",
}
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


class Misread(yaml.MarkedYAMLError):
    """What is YAML and reads as something that nobody meant; its problem is a clause."""


class DescriptionLoader(yaml.SafeLoader):
    """YAML's safe loader, without the readings that nobody means."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  # its base's
        _refuse(node)
        try:
            return super().construct_object(node, deep=deep)
        except yaml.YAMLError:
            raise
        except (ValueError, KeyError, AttributeError, OverflowError) as error:
            kind = str(node.tag).removeprefix(_TAG)
            problem = f"{str(node.value)[:40]!r} cannot be read as {kind}; correct it"
            raise _problem(node, problem) from error

    def construct_mapping(  # its base's
        self,
        node: Any,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Hashable, Any]:
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag in _READ_AS:
                written = str(key.value)[:40] or "nothing"
                raise _problem(
                    key,
                    f"the key {written} is read as {_READ_AS[key.tag]}, and keys are text; put it "
                    f"in quotes",
                )
        return super().construct_mapping(node, deep=deep)


def loader(text: str) -> DescriptionLoader:
    """Return a loader over a text; raise MarkedYAMLError for a character YAML has not."""
    try:
        return DescriptionLoader(text)
    except yaml.reader.ReaderError as error:
        at = error.position
        raise _bad_character(text, at) from None


def json_content(text: str) -> object:
    """Return what a JSON text holds; raise JSONDecodeError."""

    def no_number(written: str) -> float:
        raise json.JSONDecodeError(f"{written} is no number", text, text.find(written))

    def whole(digits: str) -> int:
        if len(digits) > MOST_DIGITS + len("-"):
            raise json.JSONDecodeError(_too_long(digits), text, text.find(digits))
        return int(digits)

    return json.loads(text, parse_constant=no_number, parse_int=whole)


def _refuse(node: Any) -> None:
    if node.tag in _UNORDERED:
        name = str(node.tag).removeprefix(_TAG)
        raise _problem(node, f"no setting is YAML's {name}; write a list, a mapping or text")
    if not isinstance(node, yaml.ScalarNode):
        return
    if _HALF_A_CHARACTER.search(node.value):
        raise _problem(node, f"{node.value!r} has half of a character in it; correct it")
    if node.tag not in {f"{_TAG}int", f"{_TAG}float"} or node.style is not None:
        return
    written = node.value.replace("_", "")
    if node.tag == f"{_TAG}int" and _OCTAL.fullmatch(node.value):
        raise _problem(
            node,
            f"{written} begins with a zero, so that YAML reads it in base eight, as "
            f"{int(written, 8)}; write it without the zero, or in quotes if it is text",
        )
    if _SIXTIES.fullmatch(node.value):
        raise _problem(
            node,
            f"{written} has a colon, so that YAML reads it in base sixty, as a number; put it in "
            f"quotes, as YAML makes a number, a date or a truth value of some words",
        )
    if len(written) > MOST_DIGITS + len("-0x"):
        raise _problem(node, f"{_too_long(written)}; correct it")


def _too_long(digits: str) -> str:
    return (
        f"{digits[:MOST_DIGITS]}... has {len(digits)} digits, and no setting takes more than "
        f"{MOST_DIGITS}"
    )


def _problem(node: Any, problem: str) -> Misread:
    return Misread(None, None, problem, node.start_mark)


def _bad_character(text: str, at: int) -> yaml.MarkedYAMLError:
    lines = [0, *(number + 1 for number, each in enumerate(text) if each == "\n")]
    line = bisect.bisect_right(lines, at) - 1
    mark = yaml.Mark("", at, line, at - lines[line], "", 0)
    shown = f"U+{ord(text[at]):04X}" if at < len(text) else "a character"
    return yaml.MarkedYAMLError(
        None, None, f"the character {shown} may not stand in YAML; take it out", mark
    )
