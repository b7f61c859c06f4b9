"""Describes the eviction gate, and decides whether a name is an image's.

The grammar is that of github.com/distribution/reference, with one rule more: what must not run in
two versions at once names its version.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from core.cluster.fields import SUBDOMAIN, EachOnce, Frozen

# Of the repository, its registry included (NameTotalLengthMax).
IMAGE_LIMIT = 255
LAST_PORT = 65_535
_HOST_PART = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# Between words of a part stand a dot, one or two underscores, or hyphens.
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*(?::(?P<port>[0-9]{{1,5}}))?/)?{_PART}(?:/{_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def image_name(value: str) -> str:
    """Return an image's name; raise ValueError with a sentence for what is none."""
    if len(value.partition("@")[0]) > IMAGE_LIMIT:
        raise ValueError(
            f"an image's name has {len(value)} characters, and registries take {IMAGE_LIMIT}; "
            f"shorten it"
        )
    found = _IMAGE.fullmatch(value)
    if found is None or not 0 < int(found["port"] or 1) <= LAST_PORT:
        raise ValueError(
            f"{value!r} is not an image: write [registry/]repository[:tag][@sha256:digest], the "
            "repository in lower case, such as registry.example/team/connect:1.4"
        )
    return value


def versioned_image(value: str) -> str:
    """Return an image's name that says its version."""
    name = image_name(value).rpartition("/")[2]
    _, _, tag = name.partition(":")
    if "@sha256:" not in name and tag in {"", "latest"}:
        raise ValueError(
            f"{value} names no version; end it with a tag other than latest, or with a digest, "
            "such as registry.example/stillwater-gate:1.4"
        )
    return value


Image = Annotated[str, AfterValidator(image_name)]
VersionedImage = Annotated[str, AfterValidator(versioned_image)]


_SERVICE_ACCOUNT = re.compile(
    rf"system:serviceaccount:[a-z0-9]([a-z0-9-]{{0,61}}[a-z0-9])?:(?=.{{1,253}}$){SUBDOMAIN}"
)


def _service_account(value: str) -> str:
    if _SERVICE_ACCOUNT.fullmatch(value) is None:
        raise ValueError(
            f"{value[:80]!r} is not a service account; write it as "
            "system:serviceaccount:NAMESPACE:NAME"
        )
    return value


ServiceAccount = Annotated[str, AfterValidator(_service_account)]


class EvictionGate(Frozen):
    """Two replicas on the system nodes, asked by the API server before a Kafka pod is evicted."""

    image: VersionedImage
    """The image of the gate, built from this repository: `docker build --target gate`."""
    reading_age_seconds: Annotated[int, Field(ge=1, le=30)] = 2
    """The greatest age of a reading for a refusal. Consent needs one that began after the lease was
    taken.
    """
    operators: Annotated[tuple[ServiceAccount, ...], EachOnce] = ()
    """Accounts whose deletions of Kafka's pods the webhook allows, in addition to Strimzi's own, as
    `system:serviceaccount:NAMESPACE:NAME`.
    """
