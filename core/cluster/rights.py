"""Checks what every client of Kafka may do: refuses what cannot work, names what may be regretted.

The functions' rights follow from what each asks of Kafka, like their rights on AWS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.availability.wholeness import (
    EVERY,
    MOVING_LEADERS,
    READING,
    THROTTLING,
    KafkaRequest,
    KafkaResource,
    rights_for,
)
from core.cluster.kafka import Acl, Asking, Kafka, Operation, User
from core.ground import naming

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec

# What each function that speaks to Kafka sends there.
FUNCTION_CALLS: Mapping[str, frozenset[KafkaRequest]] = {
    "tick": READING | MOVING_LEADERS | THROTTLING,
    "rotate": READING,
    "health": READING,
    "volumes": frozenset({KafkaRequest.DESCRIBE_CLUSTER, KafkaRequest.DESCRIBE_LOG_DIRS}),
}
EVERYONE = "allow.everyone.if.no.acl.found"
SUPER_USERS = "super.users"
# The eviction gate, where there is one, asks what a turn of the loop does.
GATE = "gate"
_CERTIFICATES = ("tls", "tls-external")


def calls(spec: ClusterSpec) -> Mapping[str, frozenset[KafkaRequest]]:
    """Return what each of ours that speaks to Kafka in a cluster sends there."""
    return FUNCTION_CALLS if spec.eviction_gate is None else {**FUNCTION_CALLS, GATE: READING}


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody with a name, how it says so, and what it may do."""

    name: str
    authentication: str
    acls: tuple[Acl, ...]

    @property
    def sentence(self) -> str:
        may = "; ".join(acl.sentence for acl in self.acls) or "nothing"
        return f"{self.name} ({self.authentication}) may {may}."


def listeners(kafka: Kafka) -> Mapping[str, Asking]:
    """Return both listeners by their key in the spec; the internal one is asked first."""
    return {"kafka.internal_listener": kafka.internal_listener, "kafka.listener": kafka.listener}


def authentication_of(kafka: Kafka, user: User) -> str:
    """Return how a user says who it is; `none` where nobody asks."""
    if user.authentication is not None:
        return user.authentication
    asked = [listener.authentication for listener in listeners(kafka).values()]
    return next((each for each in asked if each != "none"), "none")


def functions_authentication(kafka: Kafka) -> str:
    """Return how the functions say who they are: as the listener they use asks."""
    return kafka.functions.authentication or kafka.listener.authentication


def makes_function_users(kafka: Kafka) -> bool:
    """Say whether the functions' users are ours to make, rather than somebody else's."""
    return kafka.functions.secret_name is None and functions_authentication(kafka) in {
        "tls",
        "scram-sha-512",
    }


def function_acls(function: str) -> tuple[Acl, ...]:
    """Return the ACLs of a function's user: the rights its calls need, and no other."""
    operations: dict[KafkaResource, list[str]] = {}
    for right in rights_for(FUNCTION_CALLS.get(function, READING)):
        operations.setdefault(right.resource, []).append(right.operation)
    return tuple(
        Acl.model_validate(
            {
                "resource": resource,
                "name": None if resource is KafkaResource.CLUSTER else EVERY,
                "operations": allowed,
            }
        )
        for resource, allowed in operations.items()
    )


def connect_acls(spec: ClusterSpec) -> tuple[Acl, ...]:
    """Return what Connect's workers need for themselves, and what its connectors were given."""
    if spec.connect is None:
        return ()
    group = naming.connect(spec.name)
    return (
        Acl(resource="group", name=group, operations=("Describe", "Read")),
        *(
            Acl(
                resource="topic",
                name=topic,
                operations=("Create", "Describe", "DescribeConfigs", "Read", "Write"),
            )
            for topic in naming.connect_topics(spec.name)
        ),
        *spec.connect.acls,
    )


def probe_acls() -> tuple[Acl, ...]:
    """Return what the probe needs: its own topic, and the partitions of brokers that join."""
    operations: tuple[Operation, ...] = ("Alter", "Create", "Describe", "Read", "Write")
    return (Acl(resource="topic", name=naming.PROBE_TOPIC, operations=operations),)


def problems(spec: ClusterSpec) -> list[str]:
    """Return what is wrong with listeners, users and the functions together, a clause each."""
    return [*_user_problems(spec), *_function_problems(spec), *_config_problems(spec)]


def _user_problems(spec: ClusterSpec) -> Iterator[str]:
    asked = {key: listener.authentication for key, listener in listeners(spec.kafka).items()}
    ours = {naming.function_user(spec.name, function) for function in calls(spec)}
    if spec.connect is not None:
        ours.add(naming.connect(spec.name))
        if asked["kafka.internal_listener"] == "oauth":
            yield (
                "connect's workers have a certificate or a password and no token; set "
                "kafka.internal_listener.authentication to tls or scram-sha-512"
            )
    if spec.probe is not None:
        ours.add(naming.probe(spec.name))
        if asked["kafka.internal_listener"] == "oauth":
            yield (
                "the probe has a certificate or a password and no token; set "
                "kafka.internal_listener.authentication to tls or scram-sha-512, or leave probe out"
            )
        if any(topic.name == naming.PROBE_TOPIC for topic in spec.topics):
            yield (
                f"topics names {naming.PROBE_TOPIC}, which the probe makes itself, a partition for "
                f"every broker; take it out of topics"
            )
    for user in spec.users:
        how = authentication_of(spec.kafka, user)
        if user.name in ours:
            yield f"user {user.name} is made already, for this project's own use; rename yours"
        if how == "none":
            yield (
                f"user {user.name} has no way to say who it is; set "
                f"kafka.internal_listener.authentication or kafka.listener.authentication to tls "
                f"or scram-sha-512"
            )
        elif ("tls" if how in _CERTIFICATES else how) not in asked.values():
            said = " and ".join(f"{key} asks for {value}" for key, value in asked.items())
            yield (
                f"user {user.name} says who it is by {how}, and no listener asks for that: {said}; "
                f"change one of them"
            )


def _function_problems(spec: ClusterSpec) -> Iterator[str]:
    kafka = spec.kafka
    how, functions = functions_authentication(kafka), kafka.functions
    if how == "oauth" and functions.secret_name is None:
        yield (
            "kafka.listener.authentication is oauth; put the functions' client-id and "
            "client-secret into a Secret and name it in kafka.functions.secret_name"
        )
    if how == "oauth" and kafka.listener.oauth is not None and not kafka.listener.oauth.token_url:
        yield (
            "kafka.listener.authentication is oauth, and the functions need to know where a token "
            "is had; set kafka.listener.oauth.token_url"
        )
    if how not in {"aws-iam", kafka.listener.authentication}:
        yield (
            f"kafka.functions.authentication is {how}, and the functions come through "
            f"kafka.listener, which asks for {kafka.listener.authentication}; leave it out, or "
            f"change one of them"
        )
    if how in {"none", "aws-iam"} and functions.secret_name is not None:
        yield (
            f"kafka.functions.secret_name is {functions.secret_name}, and with authentication "
            f"{how} the functions show no Secret; leave it out"
        )
    if how == "aws-iam" and not kafka.listener.tls:
        yield "Amazon MSK takes AWS roles over TLS alone; set kafka.listener.tls to true"
    if how == "none" and kafka.authorization == "simple" and not everyone_may(kafka.config):
        yield (
            "the functions connect to kafka.listener without a name, and authorization simple "
            "refuses them; set kafka.listener.authentication to tls, or kafka.authorization to "
            "none"
        )


def _config_problems(spec: ClusterSpec) -> Iterator[str]:
    kafka = spec.kafka
    anonymous = any(listener.anonymous_clients for listener in listeners(kafka).values())
    if EVERYONE in kafka.config and not anonymous:
        yield (
            f"kafka.config sets {EVERYONE}: without an ACL every client has every right; give each "
            "client a user in users"
        )
    if SUPER_USERS in kafka.config:
        yield (
            f"kafka.config sets {SUPER_USERS}, which Strimzi keeps for its own components; give "
            f"the user ACLs in users"
        )


def clients(spec: ClusterSpec) -> list[Client]:
    """Return everybody who has a name, and what it may do; none where nobody is asked."""
    kafka = spec.kafka
    found = [Client(user.name, authentication_of(kafka, user), user.acls) for user in spec.users]
    how = kafka.internal_listener.authentication
    if spec.connect is not None and how != "none":
        found.append(Client(naming.connect(spec.name), how, connect_acls(spec)))
    if spec.probe is not None and how != "none":
        found.append(Client(naming.probe(spec.name), how, probe_acls()))
    if makes_function_users(kafka):
        how = kafka.listener.authentication
        found += [
            Client(naming.function_user(spec.name, function), how, function_acls(function))
            for function in calls(spec)
        ]
    return found


def sentences(spec: ClusterSpec) -> list[str]:
    """Return what each client may do, for `stillwater check` to print."""
    if spec.kafka.authorization == "none":
        return []
    return [client.sentence for client in clients(spec)]


def everyone_may(config: Mapping[str, object]) -> bool:
    """Say whether Kafka's settings let everybody do what no ACL takes away."""
    return str(config.get(EVERYONE, "")).lower() == "true"
