"""Describes Kafka's clients: what a listener asks of them, what users and functions may do.

Strimzi 1.x knows `tls`, `scram-sha-512` and `custom` (its CRD has no `oauth` any more): OAuth is
rendered as `custom`, with the handlers of Strimzi's own OAuth library, which is in its images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from core.cluster.fields import DnsLabel, Frozen, KubernetesName

# It stands in a JAAS configuration between quotes, and a function is told of one.
HttpsUrl = Annotated[
    str,
    StringConstraints(
        pattern=r"^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?"
        r"([/?][^\s\"\\;]*)?$",
        max_length=400,
    ),
]
# What stands in a JAAS configuration between quotes.
Claim = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]+$", max_length=200)]
# Strimzi's KafkaUserQuotas hold an Integer of Java's; one user beyond it stops the user operator.
MOST_BYTES_PER_S = 2**31 - 1
Resource = Literal["topic", "group", "cluster", "transactionalId"]
Operation = Literal[
    "All",
    "Alter",
    "AlterConfigs",
    "ClusterAction",
    "Create",
    "Delete",
    "Describe",
    "DescribeConfigs",
    "IdempotentWrite",
    "Read",
    "Write",
]
# Source: org.apache.kafka.security.authorizer.AclEntry, supportedOperations; Kafka refuses others.
OPERATIONS: Mapping[Resource, tuple[Operation, ...]] = {
    "topic": (
        *("Read", "Write", "Create", "Describe", "Delete", "Alter"),
        *("DescribeConfigs", "AlterConfigs", "All"),
    ),
    "group": ("Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs", "All"),
    "cluster": (
        *("Create", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"),
        *("Alter", "Describe", "All"),
    ),
    "transactionalId": ("Describe", "Write", "All"),
}
# On the cluster: Alter writes ACLs, so whoever has it may give itself every right.
TAKES_EVERYTHING: frozenset[Operation] = frozenset({"All", "Alter", "ClusterAction"})


class OAuth(Frozen):
    """The authorization server whose tokens a listener takes."""

    valid_issuer_url: HttpsUrl
    """Who must have issued a token: its `iss` claim."""
    jwks_url: HttpsUrl
    """Where the keys are that tokens are signed with."""
    user_name_claim: Claim = "sub"
    """The claim that names the user; ACLs are of this name."""
    audience: Claim | None = None
    """What must stand in a token's `aud` claim; without one, it is not looked at."""
    token_url: HttpsUrl | None = None
    """Where the functions get their own token; needed where `kafka.listener` asks for one."""


class Asking(Frozen):
    """What every listener asks of its clients."""

    tls: bool = True
    """Whether clients speak TLS, with certificates of the cluster's own authority."""
    authentication: Literal["tls", "scram-sha-512", "oauth", "none"] = "tls"
    """How clients say who they are: by certificate, by password, by token, or, with
    `anonymous_clients`, not at all.
    """
    anonymous_clients: bool = False
    """Said aloud where `authentication` is `none`: whoever reaches the listener is a client."""
    oauth: OAuth | None = None
    """Whose tokens it takes, where `authentication` is `oauth`."""

    @model_validator(mode="after")
    def _can_ask(self) -> Self:
        problems = [problem for problem in self._problems() if problem]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> tuple[str, ...]:
        asks = self.authentication
        return (
            "authentication tls shows a client's certificate, which only a listener with tls asks "
            "for; set tls to true, or authentication to scram-sha-512, or to none together with "
            "anonymous_clients: true"
            if asks == "tls" and not self.tls
            else "",
            "authentication oauth sends a token that whoever reads it may use, so set tls to true"
            if asks == "oauth" and not self.tls
            else "",
            "authentication none lets whoever reaches the listener in without a name; set "
            "anonymous_clients to true if that is meant, or authentication to tls, scram-sha-512 "
            "or oauth"
            if asks == "none" and not self.anonymous_clients
            else "",
            f"anonymous_clients is true and authentication {asks} asks every client who it is; set "
            f"authentication to none, or leave anonymous_clients out"
            if asks != "none" and self.anonymous_clients
            else "",
            "authentication oauth needs oauth.valid_issuer_url and oauth.jwks_url"
            if asks == "oauth" and self.oauth is None
            else "",
            f"oauth stands beside authentication {asks}; set authentication to oauth, or leave "
            f"oauth out"
            if asks != "oauth" and self.oauth is not None
            else "",
        )


class Acl(Frozen):
    """What a user may do with a topic, a consumer group, or the cluster."""

    resource: Resource
    """The kind of thing the operations are allowed on."""
    name: Annotated[
        str | None, StringConstraints(min_length=1, max_length=249, pattern=r"^[^\x00-\x1f\x7f]+$")
    ] = None
    """Its name, which everything but the cluster needs; `*` is every resource of its kind, present
    and to come.
    """
    prefix: bool = False
    """Whether the name is a prefix: every resource whose name begins with it."""
    operations: Annotated[tuple[Operation, ...], Field(min_length=1)]
    """What is allowed."""

    @model_validator(mode="after")
    def _is_one_that_kafka_takes(self) -> Self:
        if self.resource == "cluster" and (self.name is not None or self.prefix):
            raise ValueError(
                f"the cluster has no name, and this ACL names {self.name!r}; leave name and prefix "
                f"out, or set resource to topic, group or transactionalId"
            )
        if self.resource != "cluster" and self.name is None:
            raise ValueError(
                f"an ACL on a {self.resource} needs a name; give one, one with prefix: true, or "
                f'"*" for every {self.resource}'
            )
        if self.name == "*" and self.prefix:
            raise ValueError(
                'name "*" with prefix is every name that begins with an asterisk; leave prefix out'
            )
        known = OPERATIONS[self.resource]
        wrong = [operation for operation in self.operations if operation not in known]
        if wrong:
            raise ValueError(
                f"Kafka knows no {wrong[0]} on a {self.resource}; it knows {', '.join(known)}"
            )
        return self

    @property
    def sentence(self) -> str:
        """Return what it allows, as a person says it: Read, Write on topics orders-*."""
        if self.resource == "cluster":
            where = "the cluster"
        elif self.name == "*":
            where = f"every {self.resource}"
        else:
            where = f"{self.resource} {self.name}{'*' if self.prefix else ''}"
        return f"{', '.join(self.operations)} on {where}"


class User(Frozen):
    """A client with a name."""

    name: DnsLabel
    """The user's name, and its Secret's."""
    authentication: Literal["tls", "scram-sha-512", "tls-external", "oauth"] | None = None
    """How it says who it is: by a certificate or a password that Strimzi makes, by a certificate
    made elsewhere (its subject `CN=` the name), or by a token of this name. Without one, as
    `kafka.internal_listener` asks, or `kafka.listener` where that one asks nobody.
    """
    acls: tuple[Acl, ...] = ()
    """What the user may do; nothing else."""
    producer_bytes_per_s: Annotated[int | None, Field(ge=1, le=MOST_BYTES_PER_S)] = None
    """Quota on what it writes, per broker."""
    consumer_bytes_per_s: Annotated[int | None, Field(ge=1, le=MOST_BYTES_PER_S)] = None
    """Quota on what it reads, per broker."""


class Functions(Frozen):
    """Who this project's own functions are to Kafka.

    Left out, each function that asks Kafka is a user of its own, made with exactly its rights, and
    says who it is as `kafka.listener` asks.
    """

    authentication: Literal["tls", "scram-sha-512", "oauth", "aws-iam", "none"] | None = None
    """How they say who they are, where that is not what `kafka.listener` asks. `aws-iam`: by their
    AWS role, to Amazon MSK.
    """
    secret_name: KubernetesName | None = None
    """A Secret in `kubernetes.namespace` that somebody else fills, for all of them: `user.crt` and
    `user.key`, or `tls.crt` and `tls.key`; `username` and `password`; or `client-id` and
    `client-secret`. No users are made then, and what they need is granted by its owner.
    """
    authority_secret_name: KubernetesName | None = None
    """A Secret with the authorities (`*.crt`) of the brokers' certificates; without one,
    Strimzi's `<cluster>-cluster-ca-cert`.
    """
