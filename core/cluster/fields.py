"""What the sections of a ClusterSpec share: their base and the shapes of common values."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
HOST_NAME_LIMIT = 253


def _host_name(value: str) -> str:
    if len(value) > HOST_NAME_LIMIT or _HOST.fullmatch(value) is None:
        raise ValueError(
            f"{value!r} is no host name: write parts of letters, digits and hyphens with a dot "
            f"between them, 63 characters each and {HOST_NAME_LIMIT} in all, such as "
            f"kafka.example.internal"
        )
    return value


# RFC 1123, without the dot at the end.
HostName = Annotated[str, AfterValidator(_host_name)]
DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$")]
# Strimzi's CRD admits no dash in a listener's name (research: strimzi-and-kafka 1.3).
ListenerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,11}$")]
ZoneName = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")]
InstanceType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")]
KmsKeyArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})$"
    ),
]
Seconds = Annotated[int, Field(ge=1)]


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
            f"{written!r} is no block of addresses; write one such as 10.40.0.0/16"
        ) from None
    if str(block) != written:
        raise ValueError(
            f"{written} names a host in a network, and AWS keeps the network; write {block}"
        )
    return block


class Frozen(BaseModel):
    """A section; the text below each of its fields is its meaning in docs/reference/."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
