"""The twin's entity operator: KafkaTopics and KafkaUsers become what they describe in the cluster.

As Strimzi's does without finalizers: a topic is made, grown and configured; fewer partitions or
another number of replicas is refused in the status; a KafkaTopic deleted while its Kafka lives
takes the topic with it. A setting that leaves the resource keeps its last value here.

A user gets a certificate of the clients' authority or a password, in a Secret of its name that is
made again when it is gone, and exactly the ACLs of its resource; a user whose resource is gone has
none. Quotas are left out.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from core.ground import naming
from core.ground.errors import StillwaterError
from local.kubernetes.client import Api, Informer, find, has_condition
from local.kubernetes.strimzi_admin import admin, answers, runs
from local.kubernetes.strimzi_authorities import (
    CLIENTS_GENERATION,
    Authority,
    authority_of,
    data_of,
    ends_at,
    is_signed_by,
    key_store,
    user_certificate,
    with_data,
)
from local.kubernetes.strimzi_config import plain
from local.kubernetes.strimzi_model import SCRAM, TLS
from local.kubernetes.strimzi_objects import (
    READY,
    STRIMZI,
    EntityOperator,
    Object,
    OperatorObjects,
    kafka_of,
    not_ready,
    resource_path,
)
from local.kubernetes.strimzi_resources import KIND_LABEL, described, owner_reference

UNKNOWN_TOPIC = 3


class RefusedTopic(StillwaterError):
    """What a topic's resource asks for cannot be done to a topic that exists."""


class TopicOperator(EntityOperator):
    """Brings every KafkaTopic to what it says."""

    kind, retry_seconds = "Topics", 2.0

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        super().__init__(api, objects)
        self._topics = Informer(api, f"{STRIMZI}/kafkatopics", self._on_change)
        self.informers = (self._topics,)

    def _reconcile_all(self) -> None:
        waiting = [t for t in list(self._topics.objects.values()) if not _is_settled(t)]
        for kafka in sorted({kafka_of(topic) for topic in waiting}):
            if not runs(self._api, *kafka):
                continue
            with admin(self._api, *kafka) as client:
                for topic in waiting:
                    if kafka_of(topic) == kafka:
                        self._reconcile(client, topic)

    def _reconcile(self, client: KafkaAdminClient, topic: Object) -> None:
        reason, message = "", ""
        try:
            _bring(client, topic)
        except RefusedTopic as error:
            reason, message = "NotSupported", str(error)
        except KafkaError as error:
            reason, message = "KafkaError", f"Kafka refused the topic: {error}."
        path = resource_path("kafkatopics", topic)
        failed = {"type": "Ready", "status": "False", "reason": reason, "message": message}
        self._objects.report(topic, path, failed if reason else READY)

    def _forget(self, topic: Object) -> None:
        kafka = kafka_of(topic)
        if not runs(self._api, *kafka):
            return  # the cluster goes as a whole, and its volumes keep the records
        with admin(self._api, *kafka) as client:
            try:
                client.delete_topics([topic_name(topic)])
            except UnknownTopicOrPartitionError:
                return


def topic_name(topic: Object) -> str:
    return str((topic.get("spec") or {}).get("topicName") or topic["metadata"]["name"])


def _bring(client: KafkaAdminClient, topic: Object) -> None:
    """Make the topic what its resource says; raises Refused for what no topic can become."""
    name, spec = topic_name(topic), topic.get("spec") or {}
    config = {key: plain(value) for key, value in (spec.get("config") or {}).items()}
    partitions, replicas = int(spec.get("partitions") or -1), int(spec.get("replicas") or -1)
    (found,) = client.describe_topics([name])
    if found["error_code"] == UNKNOWN_TOPIC:
        client.create_topics([NewTopic(name, partitions, replicas, topic_configs=config)])
        return
    _check(name, found["partitions"], partitions, replicas)
    if partitions > len(found["partitions"]):
        client.create_partitions({name: partitions})
    if config:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, config)])


def _check(name: str, found: list[dict[str, Any]], partitions: int, replicas: int) -> None:
    now = {len(partition["replica_nodes"]) for partition in found}
    if 0 < partitions < len(found):
        raise RefusedTopic(
            f"Topic {name} has {len(found)} partitions and cannot have {partitions}: Kafka never "
            f"removes one; ask for {len(found)} or more."
        )
    if replicas > 0 and now != {replicas}:
        raise RefusedTopic(
            f"Topic {name} has {max(now)} replicas and cannot get {replicas} here: that is a "
            f"reassignment; ask for {max(now)}, or reassign its partitions first."
        )


def _is_settled(topic: Object) -> bool:
    """Say whether this very description was brought about, or refused, already."""
    status = topic.get("status") or {}
    conditions = status.get("conditions") or []
    final = any(
        c["type"] == "Ready" and (c["status"] == "True" or c["reason"] == "NotSupported")
        for c in conditions
    )
    return final and status.get("observedGeneration") == topic["metadata"]["generation"]


KIND = "KafkaUser"
EXTERNAL = "tls-external"
RENEWAL = dt.timedelta(days=30)  # Strimzi's default
PASSWORD_BYTES = 24
WORDS = {"prefix": "PREFIXED"}
Key = tuple[str, ...]


class UserOperator(EntityOperator):
    """Brings every KafkaUser to what it says."""

    kind, retry_seconds = "Users", 1.0

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        super().__init__(api, objects)
        self._users = Informer(api, f"{STRIMZI}/kafkausers", self._on_change)
        self._secrets = Informer(
            api, "/api/v1/secrets", self._secret_changed, labelSelector=naming.CLUSTER_LABEL
        )
        self.informers = (self._users, self._secrets)

    def _secret_changed(self, _event: str, _secret: Object) -> None:
        self._work.put(None)

    def _reconcile_all(self) -> None:
        users = [
            u for u in self._users.objects.values() if "deletionTimestamp" not in u["metadata"]
        ]
        for namespace, cluster in sorted({kafka_of(user) for user in users}):
            authority = self._authority(namespace, cluster)
            mine = [u for u in users if kafka_of(u) == (namespace, cluster)]
            waiting = [u for u in mine if authority is None or not self._is_settled(u, authority)]
            if not waiting or authority is None or not answers(namespace, cluster):
                continue
            if not self._is_trusted(namespace, cluster, authority):
                continue
            with admin(self._api, namespace, cluster) as client:
                held = _acls(client)
                for user in waiting:
                    self._reconcile(client, user, authority, held)

    def _reconcile(
        self, client: KafkaAdminClient, user: Object, authority: Authority, held: Mapping[Key, ACL]
    ) -> None:
        path = resource_path("kafkausers", user)
        if refused := acl_problem(user, self._kafka(user)):
            self._objects.report(user, path, not_ready("InvalidResourceException", refused))
            return
        try:
            self._issue(client, user, authority)
            _bring_acls(client, user, held)
            condition: Object = READY
        except KafkaError as error:
            condition = not_ready("KafkaException", f"Kafka refused the user: {error}.")
        said = {"username": principal(user).removeprefix("User:"), "secret": _name(user)}
        self._objects.report(user, path, condition, **said)

    def _kafka(self, user: Object) -> Object:
        namespace, cluster = kafka_of(user)
        return find(self._api, f"{STRIMZI}/namespaces/{namespace}/kafkas/{cluster}") or {}

    def _issue(self, client: KafkaAdminClient, user: Object, authority: Authority) -> None:
        """Write the Secret, unless the one that is there serves."""
        namespace, name, how = user["metadata"]["namespace"], _name(user), authentication(user)
        stored = data_of(find(self._api, f"/api/v1/namespaces/{namespace}/secrets/{name}"))
        if how == TLS and not _serves(stored, authority):
            self._objects.apply(with_data(_secret(user), certificate_data(name, authority)))
        elif how == SCRAM:
            password = stored.get("password") or secrets.token_urlsafe(PASSWORD_BYTES)
            client.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_512, password)]
            )
            self._objects.apply(with_data(_secret(user), password_data(name, password)))

    def _is_settled(self, user: Object, authority: Authority) -> bool:
        """Say whether this very description was brought about, and its Secret still serves."""
        status = user.get("status") or {}
        stored = data_of(self._secrets.objects.get((user["metadata"]["namespace"], _name(user))))
        how = authentication(user)
        serves = (how == TLS and _serves(stored, authority)) or (
            how == SCRAM and "password" in stored
        )
        current = status.get("observedGeneration") == user["metadata"]["generation"]
        return has_condition(user) and current and (serves or how not in {TLS, SCRAM})

    def _authority(self, namespace: str, cluster: str) -> Authority | None:
        name = naming.clients_ca_secret(cluster)
        found = self._secrets.objects
        return authority_of(
            found.get((namespace, name.removesuffix("-cert"))), found.get((namespace, name))
        )

    def _is_trusted(self, namespace: str, cluster: str, authority: Authority) -> bool:
        """Say whether every broker trusts the authority: who showed its certificate is let in."""
        ours = f"{naming.CLUSTER_LABEL}={cluster},strimzi.io/broker-role=true"
        pods = self._api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=ours)["items"]
        marks = [pod["metadata"].get("annotations") or {} for pod in pods]
        return all(int(m.get(CLIENTS_GENERATION, "0")) >= authority.generation for m in marks)

    def _forget(self, user: Object) -> None:
        """Take away what a user had in Kafka; its Secret names it as its owner and goes with it."""
        namespace, cluster = kafka_of(user)
        if not runs(self._api, namespace, cluster):
            return
        with admin(self._api, namespace, cluster) as client:
            _remove(client, _of(principal(user), _acls(client)).values())
            if authentication(user) == SCRAM:
                gone = UserScramCredentialDeletion(_name(user), ScramMechanism.SCRAM_SHA_512)
                client.alter_user_scram_credentials([gone])


def certificate_data(name: str, authority: Authority) -> dict[str, str | bytes]:
    """Return what the Secret of a user with a certificate holds."""
    issued, password = user_certificate(authority.current, name), secrets.token_urlsafe(9)
    return {
        "ca.crt": authority.current.certificate,
        "user.crt": issued.certificate,
        "user.key": issued.key,
        "user.p12": key_store(issued, name, password),
        "user.password": password,
    }


def password_data(name: str, password: str) -> dict[str, str | bytes]:
    """Return what the Secret of a user with a password holds."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{name}" password="{password}";'
    return {"password": password, "sasl.jaas.config": jaas}


def authentication(user: Object) -> str | None:
    """Return how a user says who it is; None: by a name that somebody else vouches for."""
    found = (user.get("spec") or {}).get("authentication") or {}
    return found.get("type")


def principal(user: Object) -> str:
    """Return what Kafka calls a user: by its certificate's subject, or by its plain name."""
    named = _name(user)
    return f"User:CN={named}" if authentication(user) in {TLS, EXTERNAL} else f"User:{named}"


def acl_problem(user: Object, kafka: Mapping[str, Any]) -> str:
    """Return what Strimzi says of ACLs where its Kafka asks for none; empty: nothing."""
    asks = ((kafka.get("spec") or {}).get("kafka") or {}).get("authorization")
    if asks or not (user.get("spec") or {}).get("authorization"):
        return ""
    return (
        "Simple authorization ACL rules are configured but not supported in the Kafka cluster "
        "configuration."
    )


def acls_of(user: Object) -> dict[Key, ACL]:
    """Return the ACLs of a resource, each by what tells it from others."""
    rules = ((user.get("spec") or {}).get("authorization") or {}).get("acls") or []
    found = [_acl(principal(user), rule, each) for rule in rules for each in rule["operations"]]
    return {_key(acl): acl for acl in found}


def _acl(whose: str, rule: Mapping[str, Any], operation: str) -> ACL:
    resource = rule["resource"]
    of_cluster = resource["type"] == "cluster"
    return ACL(
        principal=whose,
        host=rule.get("host", "*"),
        operation=ACLOperation[_word(operation)],
        permission_type=ACLPermissionType[_word(rule.get("type", "allow"))],
        resource_pattern=ResourcePattern(
            ResourceType[_word(resource["type"])],
            "kafka-cluster" if of_cluster else resource["name"],
            ACLResourcePatternType[_word(resource.get("patternType", "literal"))],
        ),
    )


def _word(text: str) -> str:
    """Return a word of Strimzi's as Kafka's protocol has it: DescribeConfigs, DESCRIBE_CONFIGS."""
    parted = "".join(f"_{c}" if c.isupper() and n else c for n, c in enumerate(text)).upper()
    return WORDS.get(text, parted)


def _key(acl: ACL) -> Key:
    pattern = acl.resource_pattern
    return (
        *(acl.principal, acl.host, acl.operation.name, acl.permission_type.name),
        *(pattern.resource_type.name, pattern.resource_name, pattern.pattern_type.name),
    )


def _acls(client: KafkaAdminClient) -> dict[Key, ACL]:
    every = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    found, _ = client.describe_acls(
        ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, every)
    )
    return {_key(acl): acl for acl in found}


def _of(whose: str, held: Mapping[Key, ACL]) -> dict[Key, ACL]:
    return {key: acl for key, acl in held.items() if acl.principal == whose}


def _bring_acls(client: KafkaAdminClient, user: Object, held: Mapping[Key, ACL]) -> None:
    wanted, mine = acls_of(user), _of(principal(user), held)
    missing = [wanted[key] for key in wanted.keys() - mine.keys()]
    if missing:
        refused = client.create_acls(missing)["failed"]
        if refused:
            raise KafkaError(f"an ACL was not taken: {refused[0]}")
    _remove(client, [mine[key] for key in mine.keys() - wanted.keys()])


def _remove(client: KafkaAdminClient, acls: Iterable[ACL]) -> None:
    filters = [
        ACLFilter(
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
            ResourcePatternFilter(
                acl.resource_pattern.resource_type,
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type,
            ),
        )
        for acl in acls
    ]
    if filters:
        client.delete_acls(filters)


def _serves(stored: Mapping[str, str], authority: Authority) -> bool:
    """Say whether a certificate is of the authority that stands now, and far from its end."""
    if "user.crt" not in stored or "user.key" not in stored:
        return False
    issued = stored["user.crt"]
    lasts = ends_at(issued) - dt.datetime.now(dt.UTC) > RENEWAL
    return lasts and is_signed_by(issued, authority.current.certificate)


def _secret(user: Object) -> dict[str, Any]:
    namespace, cluster = kafka_of(user)
    labels = {naming.CLUSTER_LABEL: cluster, KIND_LABEL: KIND}
    owner = owner_reference(KIND, _name(user), user["metadata"]["uid"])
    return described("v1", "Secret", _name(user), namespace, labels, owner)


def _name(user: Object) -> str:
    return str(user["metadata"]["name"])
