"""Judges a call by botocore's model of it, and says which actions and principals of services exist.

The model knows what is required, enums, patterns, lengths and ranges. The sets of characters that
EC2 takes stand in a member's documentation alone, and are read there. Actions are the service
authorization reference's, which cfn-lint, that moto brings along, keeps as a table. AWS keeps no
list of principals: one is a service's prefix, before it perhaps the part of that service or a
region; what no table knows by any of these is refused by IAM as no principal.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session

from local.refusals.documents import cfn_lint_data, words
from local.refusals.refusal import Refusal

# A service's code for a value that its model rules out; most say ValidationException.
CODES: Mapping[str, str] = {
    "autoscaling": "ValidationError",
    "cloudwatch": "ValidationError",
    "ec2": "InvalidParameterValue",
    "eks": "InvalidParameterException",
    "elbv2": "ValidationError",
    "iam": "ValidationError",
    "logs": "InvalidParameterException",
    "route53": "InvalidInput",
    "s3": "InvalidArgument",
    "sns": "InvalidParameter",
    "sqs": "InvalidAttributeValue",
}
# "a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=;{}!$*", after either of EC2's two introductions.
_CHARACTERS = re.compile(r"(?:Valid|Allowed) characters(?: are|:)\s+(a-z, A-Z, 0-9.*?)(?=<|$)")
_LENGTH = re.compile(r"Up to (\d+) characters in length")
# What Java's expressions have and Python's do not: classes of Unicode, inside brackets as AWS uses
# them, and code points above the first plane written as their two halves.
_JAVA = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", "\U00010000-\U0010ffff"),
    (r"\x{10FFFF}", "\U0010ffff"),
    (r"\p{Alnum}", "a-zA-Z0-9"),
    (r"\p{Graph}", "!-~"),
    (r"\p{Print}", " -~"),
    (r"\p{IsAlphabetic}", "a-zA-Z\u00c0-\uffff"),
    (r"\p{L}", "a-zA-Z\u00c0-\uffff"),
    (r"\p{Lu}", "A-Z\u00c0-\uffff"),
    (r"\p{Ll}", "a-z\u00c0-\uffff"),
    (r"\p{M}", "\u0300-\u036f"),
    (r"\p{N}", "0-9"),
    (r"\p{Nd}", "0-9"),
    (r"\p{P}", r"!-/:-@\[-`{-~"),
    (r"\p{S}", r"$+<=>^`|~"),
    (r"\p{Z}", r"\s"),
    (r"\p{Zs}", r"\s"),
    (r"\p{ASCII}", r"\x00-\x7f"),
    (r"\P{M}", r"\s\S"),
    (r"\p{all}", r"\s\S"),
)


@functools.cache
def service_model(service: str) -> Any:
    """Return botocore's model of a service."""
    return botocore.session.get_session().get_service_model(service)


def words_of(service: str, shape: str) -> frozenset[str]:
    """Return the words that a service's model has for a shape, such as EC2's InstanceType.

    >>> "eu-central-1" in words_of("botocore", "regions")
    True
    """
    if (service, shape) == ("botocore", "regions"):
        return _regions()
    return frozenset(service_model(service).shape_for(shape).enum)


@functools.cache
def _regions() -> frozenset[str]:
    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(r for p in partitions for r in session.get_available_regions("s3", p))


def input_shape(service: str, operation: str) -> Any:
    return service_model(service).operation_model(operation).input_shape


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """The characters a text may have, as its documentation spells them."""

    spelled: str

    @property
    def expression(self) -> re.Pattern[str]:
        ranges, _, signs = self.spelled.partition("and ")
        spaces = " " if "space" in ranges or "space" in signs else ""
        signs = re.sub(r"^spaces?,? ?(and )?", "", signs).strip()
        return re.compile(f"[a-zA-Z0-9{spaces}{re.escape(signs)}]*")


@functools.cache
def documented_limits(documentation: str) -> tuple[CharacterSet | None, int | None]:
    """Return the set of characters and the greatest length that a member's text states."""
    text = html.unescape(documentation)
    found, length = _CHARACTERS.search(text), _LENGTH.search(text)
    return (
        CharacterSet(found.group(1).strip().rstrip(".")) if found else None,
        int(length.group(1)) if length else None,
    )


@functools.cache
def expression(pattern: str) -> re.Pattern[str]:
    """Return a model's pattern, which is Java's, as Python's."""
    for java, python in _JAVA:
        pattern = pattern.replace(java, python)
    # \w and \d are ASCII's in Java.
    return re.compile(pattern, re.ASCII)


def breaches(service: str, operation: str, parameters: Mapping[str, Any]) -> list[Refusal]:
    """Return what the model of an operation rules out in its parameters."""
    found = _structure(input_shape(service, operation), parameters, "")
    code = CODES.get(service, "ValidationException")
    return [Refusal(operation, code, message, at) for at, message in found]


_Found = Iterator[tuple[str, str]]


def _refusal(at: str, value: object, constraint: str) -> tuple[str, str]:
    return at, (
        f"1 validation error detected: Value '{str(value)[:200]}' at '{at}' failed to satisfy "
        f"constraint: {constraint}"
    )


def _any(shape: Any, value: Any, at: str) -> _Found:
    if shape.type_name == "structure":
        yield from _structure(shape, value, at)
    elif shape.type_name == "list":
        yield from _size(shape, value, at)
        for index, item in enumerate(value):
            yield from _any(shape.member, item, f"{at}.{index + 1}")
    elif shape.type_name == "map":
        yield from _size(shape, value, at)
        for key, item in value.items():
            yield from _any(shape.key, key, f"{at}.key")
            yield from _any(shape.value, item, f"{at}.{key}")
    elif shape.type_name in {"string", "character"}:
        yield from _text(shape, str(value), at)
    elif shape.type_name in {"integer", "long", "float", "double"} and not isinstance(value, bool):
        yield from _range(shape, value, at, value)


def _structure(shape: Any, value: Any, at: str) -> _Found:
    for name in shape.metadata.get("required", ()):
        if value.get(name) is None:
            yield _refusal(f"{at}.{name}".lstrip("."), None, "Member must not be null")
    for name, item in value.items():
        if name in shape.members and item is not None:
            yield from _any(shape.members[name], item, f"{at}.{name}".lstrip("."))


def _size(shape: Any, value: Any, at: str) -> _Found:
    yield from _range(shape, value, at, len(value), "length")


def _range(shape: Any, value: Any, at: str, measured: float, what: str = "value") -> _Found:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and measured < least:
        yield _refusal(at, value, f"Member must have {what} greater than or equal to {least}")
    if most is not None and measured > most:
        yield _refusal(at, value, f"Member must have {what} less than or equal to {most}")


def _text(shape: Any, value: str, at: str) -> _Found:
    yield from _size(shape, value, at)
    pattern = shape.metadata.get("pattern")
    if pattern is not None and expression(pattern).fullmatch(value) is None:
        yield _refusal(at, value, f"Member must satisfy regular expression pattern: {pattern}")
    if shape.enum and value not in shape.enum:
        allowed = ", ".join(shape.enum)
        yield _refusal(at, value, f"Member must satisfy enum value set: [{allowed}]")
    characters, most = documented_limits(shape.documentation or "")
    if characters is not None:
        if characters.expression.fullmatch(value) is None or len(value) > (most or 255):
            yield at, _ec2_words(at, characters)
    elif most is not None and len(value) > most:
        yield _refusal(at, value, f"Member must have length less than or equal to {most}")


def _ec2_words(at: str, characters: CharacterSet) -> str:
    subject = "rule description" if "IpPermissions" in at else "security group description"
    if not at.endswith("Description"):
        subject = f"value for parameter {at}"
    signs = characters.spelled.partition("and ")[2]
    return (
        f"Invalid {subject}. Valid descriptions are strings less than 256 characters from the "
        f"following set: a-zA-Z0-9 {signs}"
    )


_DOMAIN = re.compile(
    r"(?P<names>[a-z0-9.-]+)\.(?:amazonaws\.com(?:\.cn)?|aws\.internal|api\.aws|amazon\.com)"
)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_OTHERWISE = words("principals")


def is_service(principal: str) -> bool:
    """Say whether a service's principal can be one.

    >>> is_service("pods.eks.amazonaws.com"), is_service("lamda.amazonaws.com")
    (True, False)
    """
    found = _DOMAIN.fullmatch(principal)
    if found is None:
        return False
    named = [each for each in found["names"].split(".") if not _REGION.fullmatch(each)]
    return any(each in _known_services() for each in named)


@functools.cache
def _known_services() -> frozenset[str]:
    services_of_clients = botocore.session.get_session().get_available_services()
    plain = {service.replace("-", "") for service in services_of_clients}
    return services() | _OTHERWISE | clients() | plain


@functools.cache
def clients() -> frozenset[str]:
    """Return the names of services by which botocore makes clients, and the parts of endpoints."""
    session = botocore.session.get_session()
    known = set(session.get_available_services())
    for partition in session.get_data("endpoints")["partitions"]:
        known |= {part for service in partition["services"] for part in service.split(".")}
    return frozenset(known)


_TABLE = "AdditionalSpecs/Policies.json"


def actions(service: str) -> Mapping[str, frozenset[str]]:
    """Return a service's actions in lower case, each with the kinds of resource it is on.

    >>> sorted(actions("s3")["getbucketlocation"])
    ['bucket']
    """
    known = _table().get(service, {}).get("Actions", {})
    return {name: frozenset(each.get("Resources", ())) for name, each in known.items()}


def services() -> frozenset[str]:
    """Return the prefixes of all services."""
    return frozenset(_table())


@functools.cache
def _table() -> dict[str, Any]:
    folder = cfn_lint_data()
    known: dict[str, Any] = json.loads((folder / _TABLE).read_text()) if folder else {}
    return known
