"""Defines what a call needs of IAM, and what is asked of the account to say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.ground.errors import StillwaterError
from local.environment import ACCOUNT, PARTITION

ANY = "*"
Keys = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One action a call needs, on one resource, with the keys IAM sees beside it."""

    action: str
    resource: str = ANY
    keys: Keys = field(default_factory=dict)


class UnmappedCall(StillwaterError):
    """A call of which the twin's IAM does not know what it needs."""


class AccountFacts(Protocol):
    """What the account knows of its resources."""

    def group_arn(self, region: str, name: str) -> str:
        """Return the ARN of an Auto Scaling group, its random part included."""

    def group_of(self, region: str, instance_id: str) -> str:
        """Return the name of the group an instance is in, or an empty text."""

    def secret_arn(self, region: str, name_or_arn: str) -> str:
        """Return a secret's ARN, its random end included."""

    def role_of_profile(self, name: str) -> str:
        """Return the ARN of the role an instance profile gives to instances."""

    def hash_key(self, region: str, table: str, index: str) -> str:
        """Return the name of a table's, or its index's, partition key."""

    def key_of_topic(self, region: str, topic_arn: str) -> str:
        """Return the ARN of the key a topic encrypts with, or an empty text."""

    def tags(self, region: str, resource: str) -> Mapping[str, str]:
        """Return the tags of what an ARN names."""


def arn(service: str, region: str, resource: str, account: str = ACCOUNT) -> str:
    return f"arn:{PARTITION}:{service}:{region}:{account}:{resource}"


def resource_tag_keys(tags: Mapping[str, str], prefix: str = "aws") -> Keys:
    """Return the keys under which a resource's tags are compared."""
    return {f"{prefix}:ResourceTag/{name}": (value,) for name, value in tags.items()}


def request_tag_keys(tags: Mapping[str, str]) -> Keys:
    """Return the keys under which the tags of a request are compared."""
    keys: dict[str, Sequence[str]] = {
        f"aws:RequestTag/{name}": (value,) for name, value in tags.items()
    }
    return keys | {"aws:TagKeys": tuple(tags)} if tags else keys
