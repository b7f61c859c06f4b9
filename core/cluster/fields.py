"""Defines what the sections of a ClusterSpec share: their base and the shapes of common values.

Expressions over metric names are joined by Strimzi with commas into one line of Java's properties,
of which the reporter makes Java patterns: a comma ends one, a backslash is taken away, and what
Java does not read stops every broker. Sources: Strimzi's prometheus.metrics.reporter.allowlist,
java.util.Properties, java.util.regex.Pattern.
"""

from __future__ import annotations

import ipaddress
import re
import typing
import unicodedata
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from core.ground.errors import one_line

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
HOST_NAME_LIMIT = 253
T = typing.TypeVar("T", bound=Iterable[str])


def _host_name(value: str) -> str:
    if len(value) > HOST_NAME_LIMIT or _HOST.fullmatch(value) is None:
        raise ValueError(
            f"{value!r} is not a host name. Write letters, digits and hyphens with dots between, "
            f"63 characters each and {HOST_NAME_LIMIT} in all, such as kafka.example.internal"
        )
    last = value.rpartition(".")[2]
    if re.fullmatch(r"0[xX][0-9a-fA-F]*", last):
        # Resolvers read it as an address (inet_aton).
        last = "0"
    # Where everything is on one machine a loopback address is a name as good as another
    # (core.checks.contradictions says where it is not).
    if is_loopback(value):
        return value
    if last.isdigit() or last.lower() in {"localhost", "localdomain"}:
        raise ValueError(
            f"{value!r} is an address or every machine's own name; write a name of your DNS, such "
            "as kafka.example.internal"
        )
    return value


# RFC 1123, without the dot at the end.
HostName = Annotated[str, AfterValidator(_host_name)]
DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$")]
# What Kubernetes takes for the name of most resources (RFC 1123, a subdomain): no part is empty, or
# begins or ends with a hyphen.
SUBDOMAIN = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
KubernetesName = Annotated[str, StringConstraints(pattern=f"^{SUBDOMAIN}$", max_length=253)]
# Strimzi's CRD admits no dash in a listener's name (research: strimzi-and-kafka 1.3).
ListenerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,11}$")]
# Of any partition, so that one that is not served is told what it is (core.ground.regions).
REGION = r"^[a-z]{2,4}(-[a-z]+)+-[0-9]$"
ZoneName = Annotated[
    str, StringConstraints(pattern=r"^[a-z]{2,4}(-[a-z]+)+-[0-9][a-z]$", max_length=32)
]
InstanceType = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", max_length=32)
]
# Of the one partition that is served (core.ground.regions).
KmsKeyArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws:kms:[a-z0-9-]+:[0-9]{12}:key/"
        r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
    ),
]
# EC2's ids have 17 characters behind the dash; those of before 2016 have 8.
_ID = r"([0-9a-f]{8}|[0-9a-f]{17})"
VpcId = Annotated[str, StringConstraints(pattern=rf"^vpc-{_ID}$")]
SubnetId = Annotated[str, StringConstraints(pattern=rf"^subnet-{_ID}$")]
RouteTableId = Annotated[str, StringConstraints(pattern=rf"^rtb-{_ID}$")]
SecurityGroupId = Annotated[str, StringConstraints(pattern=rf"^sg-{_ID}$")]
# Kubernetes' and Java's whole numbers end here (int32).
MOST_WHOLE = 2**31 - 1
Seconds = Annotated[int, Field(ge=1, le=MOST_WHOLE)]
# Of the largest machine that EC2 has, u7inh-32tb.480xlarge.
MOST_MIB, MOST_CPU_MILLIS = 32 * 1024**2, 1_920_000


def is_loopback(host: str) -> bool:
    """Say whether a host is an address that no other machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_block(written: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return a block of addresses, or raise ValueError with a sentence.

    One with bits of a host is refused: EC2 keeps the network instead, so that a rule would stand
    under another name than ours, and another of that network beside it be refused
    (AuthorizeSecurityGroupIngress, CidrIp).
    """
    try:
        block = ipaddress.ip_network(written, strict=False)
    except ValueError:
        raise ValueError(
            f"{written!r} is not a block of addresses; write one such as 10.40.0.0/16"
        ) from None
    if str(block) != written:
        raise ValueError(
            f"{written} names a host in a network, and AWS keeps the network; write {block}"
        )
    return block


def named_twice(values: Iterable[str]) -> list[str]:
    """Return what a list names more than once, sorted."""
    return sorted(value for value, count in Counter(values).items() if count > 1)


def each_once(values: T) -> T:
    """Return a list; raise for what it names more than once."""
    if twice := named_twice(values):
        raise ValueError(f"{twice[0]} is named twice; name it once")
    return values


# A list that names nothing twice.
EachOnce = AfterValidator(each_once)


def visible(value: object) -> object:
    """Return a value; raise for characters that no editor shows: it would be another name."""
    texts = value if isinstance(value, list | tuple) else (value,)
    for text in texts:
        for character in text if isinstance(text, str) else "":
            if unicodedata.category(character) == "Cf":
                raise PydanticCustomError(
                    "is_invisible",
                    "it must be without the character U+{code}, which is invisible",
                    {"code": f"{ord(character):04X}"},
                )
    return value


class Frozen(BaseModel):
    """A section; the text below each of its fields is its meaning (core.cluster.reading)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    _all_is_seen = field_validator("*", mode="before")(visible)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse `yes` where a number is asked for: Python takes True for 1."""
        # Python also takes the digits of any script.
        of_a_script = isinstance(value, str) and not value.isascii()
        if (isinstance(value, bool) or of_a_script) and info.field_name is not None:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if not {bool, str} & kinds and kinds & _NUMBERS:
                if of_a_script:
                    digits = "it must be a number, in the digits 0 to 9"
                    raise PydanticCustomError("is_of_a_script", digits)
                raise PydanticCustomError("is_no_number", "it must be a number")
        return value


_NUMBERS = frozenset[object]({int, float, Decimal})


def _kinds(annotation: object) -> set[object]:
    """Return the plain types that an annotation is made of."""
    inside = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return {type(each) for each in inside}
    return {kind for each in inside for kind in _kinds(each)} if inside else {annotation}


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
        return f"{expression!r} is not an expression that Java reads; write it more simply"
    try:
        # Java names a group without Python's P.
        re.compile(_JAVAS_GROUP.sub("(?P<", expression))
    except re.error as error:
        return f"{expression!r} is not a regular expression: {one_line(error)}"
    return None
