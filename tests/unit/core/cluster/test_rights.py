"""core.cluster.rights and identity: who is asked, who may do what, and what is refused of it."""

from typing import Any

import pytest

from core.checks.table import description_findings
from core.cluster import parse
from core.cluster.rights import sentences
from core.ground.errors import InvalidInput
from tests.every_case import every_case
from tests.tables import cases, changed
from tests.unit.core.cluster.test_cluster import GOOD

ANONYMOUS = {"authentication": "none", "anonymous_clients": True}
OPEN = {"listener": ANONYMOUS, "internal_listener": ANONYMOUS, "authorization": "none"}
SCRAM = {"authentication": "scram-sha-512"}
OAUTH = {
    "authentication": "oauth",
    "oauth": {
        "valid_issuer_url": "https://id.example/realms/kafka",
        "jwks_url": "https://id.example/certs",
        "token_url": "https://id.example/token",
    },
}
EVERYONE = {"allow.everyone.if.no.acl.found": True}


def problems(**changes: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse(changed(GOOD, changes))
    return "; ".join(caught.value.problems)


def acl(resource: str, *operations: str, **named: Any) -> list[dict[str, Any]]:
    return [
        {"name": "u", "acls": [{"resource": resource, "operations": list(operations), **named}]}
    ]


REMEDIES = """
kafka.listener.authentication: none
    => kafka.listener ... without a name ... anonymous_clients to true
kafka.listener.anonymous_clients: true => authentication tls asks every client
kafka.internal_listener.tls: false
    => needs a listener with tls ... none with anonymous_clients: true
kafka.internal_listener.authentication: oauth => oauth.valid_issuer_url
kafka.internal_listener.oauth: {valid_issuer_url: https://id.example/realms/kafka, jwks_url:
    https://id.example/certs, token_url: https://id.example/token} => oauth stands with
    authentication tls
kafka.listener: {authentication: none, anonymous_clients: true}
    => the functions connect to kafka.listener without a name ... refuses them
kafka.functions: {authentication: none, secret_name: x} => show no Secret
kafka.config: {allow.everyone.if.no.acl.found: true} => without an ACL every client has every right
kafka.config: {super.users: User:CN=me} => Strimzi keeps for its own components
users: [{name: u, authentication: scram-sha-512}]
    => says who it is by scram-sha-512 ... no listener asks ... asks for tls
users: [{name: coban-stillwater-tick}] => made already
users: [{name: u, acls: [{resource: cluster, operations: [Describe], name: orders}]}]
    => the cluster has no name ... 'orders' ... topic, group or transactionalId
users: [{name: u, acls: [{resource: cluster, operations: [Read]}]}]
    => Kafka knows no Read on a cluster ... IdempotentWrite
users: [{name: u, acls: [{resource: topic, operations: [IdempotentWrite], name: t}]}]
    => knows no IdempotentWrite on a topic
users: [{name: u, acls: [{resource: topic, operations: [Read]}]}]
    => an ACL on a topic needs a name ... "*" for every topic
kafka.listener: {authentication: oauth, oauth: {valid_issuer_url: https://id.example/realms/kafka,
    jwks_url: https://:9/x, token_url: https://id.example/token}} => begins with https:// and a
    host's name
users: [{name: u, acls: [{resource: group, operations: [Read], name: "*", prefix: true}]}]
    => begins with an asterisk
kafka.functions.authentication: scram-sha-512
    => authentication is scram-sha-512, and the functions come through ... change one of them
kafka: {listener: {authentication: scram-sha-512}, functions: {authentication: tls}}
    => authentication is tls, and the functions come through ... change one of them
kafka: {listener: {}, internal_listener: {authentication: none, anonymous_clients: true},
    authorization: none, functions: {authentication: none}} => authentication is none, and the
    functions come through ... change one of them
"""


ALSO: list[tuple[dict[str, Any], str]] = [
    ({"kafka": {"internal_listener": {**OAUTH, "tls": False}}},
        "sends a token ... set tls to true"),
    ({"kafka.listener": OAUTH}, "put the functions' client-id ... kafka.functions.secret_name"),
    ({"kafka": OPEN, "users": [{"name": "u"}]}, "user u has no way to say who it is"),
    ({"connect": {}, "kafka": {"internal_listener": OAUTH, "listener": {}}},
        "connect's workers have a certificate or a password"),
]  # fmt: skip


@every_case(("given", "words"), [*cases(REMEDIES), *ALSO])
def test_what_cannot_work_has_its_remedy(given: dict[str, Any], words: str) -> None:
    said = problems(**given)
    for word in words.split(" ... "):
        assert word in said


@every_case(
    "kafka",
    [
        {},
        OPEN,
        {"listener": SCRAM},
        {"listener": {**SCRAM, "tls": False}, "internal_listener": SCRAM},
        {"listener": OAUTH, "functions": {"secret_name": "functions"}},
        {"listener": SCRAM, "internal_listener": OAUTH},
        {"listener": ANONYMOUS, "config": EVERYONE},
        {"functions": {"authentication": "aws-iam"}},
        {"functions": {"secret_name": "theirs", "authority_secret_name": "their-ca"}},
    ],
    ids=str,
)
def test_every_way_to_ask_is_taken(kafka: dict[str, Any]) -> None:
    assert parse({**GOOD, "kafka": kafka}).kafka


def test_check_says_what_each_user_and_each_function_may_do() -> None:
    rights = {
        "resource": "topic",
        "name": "orders-",
        "prefix": True,
        "operations": ["Read", "Describe"],
    }
    users = [{"name": "billing", "acls": [rights]}, {"name": "idle"}]
    said = sentences(parse({**GOOD, "users": users, "connect": {}}))
    assert "billing (tls) may Read, Describe on topic orders-*." in said
    assert "idle (tls) may nothing." in said
    assert "coban-stillwater-volumes (tls) may Describe on the cluster." in said
    (tick,) = (line for line in said if "stillwater-tick" in line)
    assert "Alter" in tick
    assert "on every topic" in tick
    (worker,) = (line for line in said if line.startswith("coban-connect "))
    assert "group coban-connect" in worker
    assert sentences(parse({**GOOD, "kafka": OPEN})) == []


def findings(**changed: Any) -> list[tuple[str, str]]:
    found, _accepted = description_findings(parse({**GOOD, **changed}))
    return [(each.check, each.evidence) for each in found if each.check != "quorum-grows"]


def test_a_cluster_that_asks_everybody_has_no_finding() -> None:
    assert findings() == []


def test_every_door_without_a_lock_is_a_finding() -> None:
    doors = [("listener", "listener internal does not authenticate clients")]
    assert findings(kafka={"internal_listener": ANONYMOUS}) == doors
    assert [check for check, _ in findings(kafka=OPEN)].count("listener") == 2
    said = findings(kafka={"authorization": "none"})
    assert [check for check, _ in said] == ["authorization-none"] * 2


def test_a_listener_in_the_clear_is_a_finding() -> None:
    (said,) = findings(kafka={"listener": {**SCRAM, "tls": False}})
    assert said[0] == "tls-missing"


@pytest.mark.parametrize("operation", ["Alter", "All", "ClusterAction"])
def test_a_user_who_may_give_itself_every_right_is_a_finding(operation: str) -> None:
    (said,) = findings(users=acl("cluster", operation))
    assert f"has {operation} on the cluster" in said[1]
    assert findings(users=acl("cluster", "IdempotentWrite")) == []
