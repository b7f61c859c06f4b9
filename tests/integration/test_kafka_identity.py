"""Real Kafka that asks: the functions and whoever follows the how-to are let in by name.

One combined node. Its listeners ask as Strimzi's do: certificates on the ports among brokers and on
the first for clients, passwords on the second, and one that offers only another mechanism.
"""

import ast
import base64
import datetime as dt
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from kafka.errors import KafkaError

from core.availability.wholeness import rights_for
from core.cluster.rights import FUNCTION_CALLS
from core.ground.errors import StillwaterError
from core.ground.naming import cluster_ca_secret, function_user
from core.settings.functions import KafkaIdentity
from handlers.adapters.eks import EksApi
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_identity import KafkaAccess
from local.kafka import jars
from local.kafka.run import jvm
from local.place import Place, claim_place
from local.processes import Processes
from tests.integration.kafkas_tool import kafkas_tool
from tests.integration.waiting import until
from tests.unit.certificates import Issued, issue

pytestmark = pytest.mark.integration
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "kafka-clients.md"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
CLUSTER, NAMESPACE = "orders", "kafka"
TICK = function_user(CLUSTER, "tick")
AUTHORITY_SECRET = cluster_ca_secret(CLUSTER)
PASSWORD = "a-password-of-its-own"
OPERATOR = "orders-kafka"
PORTS = {"CONTROLLER": 9090, "REPLICATION": 9091, "CERT": 9093, "SCRAM": 9094, "OTHER": 9095}


class Secrets:
    """An API server's Secrets."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, str]] = {}

    def find(self, path: str) -> dict[str, Any] | None:
        found = self.data.get(path.rpartition("/")[2])
        if found is None:
            return None
        return {"data": {k: base64.b64encode(v.encode()).decode() for k, v in found.items()}}


@dataclass
class Broker:
    host: str
    directory: Path
    java: list[str]
    cluster_authority: Issued
    clients_authority: Issued
    older_clients_authority: Issued
    secrets: Secrets = field(default_factory=Secrets)

    def address(self, listener: str) -> str:
        return f"{self.host}:{PORTS[listener]}"

    def access(self, authentication: str, security: str) -> KafkaAccess:
        identity = KafkaIdentity(
            security=security,
            authentication=authentication,
            namespace=NAMESPACE,
            secret=TICK,
            authority_secret=AUTHORITY_SECRET,
        )
        return KafkaAccess(identity, cast("EksApi", self.secrets))

    def admin(
        self, listener: str, authentication: str = "tls", security: str = "SSL"
    ) -> KafkaAdmin:
        return KafkaAdmin([self.address(listener)], self.access(authentication, security))

    def pem(self, issued: Issued) -> str:
        path = self.directory / f"{issued.certificate.serial_number}.pem"
        path.write_text(issued.key_pem + issued.certificate_pem)
        return str(path)

    def settings(self, issued: Issued) -> dict[str, Any]:
        """Return how a client of its own shows a certificate."""
        context = ssl.create_default_context(cadata=self.cluster_authority.certificate_pem)
        context.load_cert_chain(self.pem(issued))
        return {"security_protocol": "SSL", "ssl_context": context}


def properties(place: Place, host: str, files: Mapping[str, str]) -> str:
    asking = "".join(
        f"listener.name.{name}.ssl.client.auth=required\n"
        f"listener.name.{name}.ssl.truststore.location={files[trusted]}\n"
        for name, trusted in (
            *(("controller", "cluster"), ("replication", "cluster"), ("cert", "clients")),
        )
    )
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:9090
controller.listener.names=CONTROLLER
inter.broker.listener.name=REPLICATION
listener.security.protocol.map=CONTROLLER:SSL,REPLICATION:SSL,CERT:SSL,SCRAM:SASL_SSL,OTHER:SASL_SSL
listeners={",".join(f"{name}://{host}:{port}" for name, port in PORTS.items())}
log.dirs={place.path("data")}
offsets.topic.replication.factor=1
log.cleaner.dedupe.buffer.size=8388608
ssl.keystore.type=PEM
ssl.keystore.location={files["broker"]}
ssl.truststore.type=PEM
ssl.truststore.location={files["cluster"]}
{asking}listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.scram.scram-sha-512.sasl.jaas.config={scram}
listener.name.other.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.other.scram-sha-256.sasl.jaas.config={scram}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:CN={OPERATOR}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with claim_place() as claim:
        place = Place(claim.number, tmp_path_factory.mktemp("kafka"))
        host = f"127.{place.number}.14.1"
        place.path("hosts").touch()
        of_cluster, of_clients = issue("cluster-ca v1", None), issue("clients-ca v1", None)
        started = Broker(
            host,
            place.directory,
            jvm(jars.fetch(), place.path("hosts")),
            of_cluster,
            of_clients,
            issue("clients-ca v0", None),
        )
        files = {
            "broker": started.pem(issue(OPERATOR, of_cluster, address=host)),
            "cluster": str(place.path("cluster.crt")),
            "clients": str(place.path("clients.crt")),
        }
        Path(files["cluster"]).write_text(of_cluster.certificate_pem)
        Path(files["clients"]).write_text(
            of_clients.certificate_pem + started.older_clients_authority.certificate_pem
        )
        config = place.path("server.properties")
        config.write_text(properties(place, host, files))
        scram = f"SCRAM-SHA-512=[name={TICK},password={PASSWORD}]"
        tool = [*started.java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
        subprocess.run(
            [*tool, "-c", str(config), "--add-scram", scram], check=True, capture_output=True
        )
        processes = Processes(place.path("pids"), place.path("logs"))
        processes.start("kafka-1", [*started.java, "kafka.Kafka", str(config)])
        try:
            _grant(started, issue(OPERATOR, of_cluster))
            yield started
        finally:
            processes.close()


def _grant(broker: Broker, operator: Issued) -> None:
    """Do what Strimzi's operators do: a topic, and the ACLs of the tick by both of its names."""

    def connected() -> KafkaAdminClient | None:
        try:
            return KafkaAdminClient(
                bootstrap_servers=broker.address("REPLICATION"),
                bootstrap_timeout_ms=2_000,
                **broker.settings(operator),
            )
        except (KafkaError, OSError):
            return None

    client = until(connected, "the broker answers")
    client.create_topics([NewTopic("orders", 3, 1), NewTopic("secrets", 1, 1)])
    acls = [
        _acl(principal, right.operation, right.resource, right.name)
        for principal in (f"User:CN={TICK}", f"User:{TICK}")
        for right in rights_for(FUNCTION_CALLS["tick"])
    ]
    acls.append(_acl("User:CN=billing", "Write", "topic", "orders"))
    client.create_acls(acls)
    client.close()
    broker.secrets.data[AUTHORITY_SECRET] = {"ca.crt": broker.cluster_authority.certificate_pem}


def _acl(principal: str, operation: str, resource: str, name: str) -> ACL:
    words = {"AlterConfigs": "ALTER_CONFIGS", "DescribeConfigs": "DESCRIBE_CONFIGS"}
    of_cluster = resource == "cluster"
    return ACL(
        principal=principal,
        host="*",
        operation=ACLOperation[words.get(operation, operation.upper())],
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(
            ResourceType.CLUSTER if of_cluster else ResourceType.TOPIC,
            "kafka-cluster" if of_cluster else name,
            ACLResourcePatternType.LITERAL,
        ),
    )


def certificate(broker: Broker, issued: Issued) -> None:
    broker.secrets.data[TICK] = {"user.crt": issued.certificate_pem, "user.key": issued.key_pem}


def topics(admin: KafkaAdmin) -> set[str]:
    return {partition.topic for partition in admin.read().partitions}


def test_a_function_is_let_in_by_its_certificate_and_moves_leaders(broker: Broker) -> None:
    certificate(broker, issue(TICK, broker.clients_authority))
    admin = broker.admin("CERT")
    assert topics(admin) == {"orders", "secrets"}
    admin.elect([("orders", 0)])


def test_a_function_is_let_in_by_its_password(broker: Broker) -> None:
    broker.secrets.data[TICK] = {"password": PASSWORD}
    admin = broker.admin("SCRAM", "scram-sha-512", "SASL_SSL")
    assert topics(admin) == {"orders", "secrets"}
    admin.elect([("orders", 0)])


def test_a_renewed_certificate_of_a_replaced_authority_needs_no_restart(broker: Broker) -> None:
    certificate(broker, issue(TICK, broker.older_clients_authority))
    admin = broker.admin("CERT")
    assert topics(admin)
    certificate(broker, issue(TICK, broker.clients_authority))
    other = issue("cluster-ca v0", None).certificate_pem
    broker.secrets.data[AUTHORITY_SECRET]["ca-2026-01-01T00-00-00Z.crt"] = other
    assert topics(admin)


@pytest.mark.parametrize(
    ("listener", "authentication", "words"),
    [
        pytest.param("CERT", "expired", ("ended at 2020-01-02", "renewed"), id="expired"),
        pytest.param(
            "CERT", "foreign", (f"refused the certificate of Secret {TICK}",), id="foreign"
        ),
        pytest.param("SCRAM", "wrong", (f"the user of Secret {TICK}",), id="wrong"),
        pytest.param("OTHER", "right", ("the listener", "offer", "SCRAM-SHA-512"), id="mechanism"),
    ],
)
def test_who_is_not_let_in_is_told_what_to_renew(
    broker: Broker, listener: str, authentication: str, words: tuple[str, ...]
) -> None:
    if listener == "CERT":
        expired = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
        mine = (
            issue(TICK, broker.clients_authority, expired)
            if authentication == "expired"
            else issue(TICK, issue("somebody's", None))
        )
        certificate(broker, mine)
        admin = broker.admin(listener)
    else:
        password = PASSWORD if authentication == "right" else "not this one"
        broker.secrets.data[TICK] = {"password": password}
        admin = broker.admin(listener, "scram-sha-512", "SASL_SSL")

    def refusal() -> str | None:
        # On a loaded machine a client's two seconds may be over before it is refused.
        with pytest.raises(StillwaterError) as caught:
            admin.read()
        said = str(caught.value)
        return said if all(word in said for word in words) else None

    assert "not this one" not in until(refusal, f"it says {words}")


def test_kafkas_own_tool_is_let_in_by_name_alone(broker: Broker) -> None:
    root = broker.pem(issue(OPERATOR, broker.clients_authority))
    here = {"/etc/kafka/ca.crt": f"{broker.directory}/cluster.crt", "/etc/kafka/user.pem": root}
    named = shown("security.protocol=SSL", here)
    where = ["--bootstrap-server", broker.address("CERT")]
    assert "Default configs for brokers" in kafkas_tool(broker.java, named, where)
    mine = {**here, '"billing"': f'"{TICK}"', '"..."': f'"{PASSWORD}"'}
    by_password = shown("security.protocol=SASL_SSL", mine)
    where = ["--bootstrap-server", broker.address("SCRAM")]
    assert "Default configs for brokers" in kafkas_tool(broker.java, by_password, where)


def test_python_clients_are_let_in_as_the_how_to_writes_them(broker: Broker) -> None:
    billing = issue("billing", broker.clients_authority)
    files = {
        "ca.crt": broker.cluster_authority.certificate_pem,
        "user.crt": billing.certificate_pem,
    }
    for name, text in {**files, "user.key": billing.key_pem}.items():
        (broker.directory / name).write_text(text)
    calls = [n for n in ast.walk(ast.parse(shown("KafkaProducer(", {}))) if isinstance(n, ast.Call)]
    assert len(calls) == 2
    for call, listener in zip(calls, ("CERT", "SCRAM"), strict=True):
        written = {k.arg: getattr(k.value, "value", PASSWORD) for k in call.keywords}
        settings = {
            str(key): str(broker.directory / value) if "file" in str(key) else value
            for key, value in written.items()
        }
        if "sasl_plain_username" in settings:
            settings["sasl_plain_username"] = TICK
        settings["bootstrap_servers"] = broker.address(listener)
        client = KafkaAdminClient(**settings)
        assert "orders" in client.list_topics(), listener
        client.close()


def shown(first: str, here: Mapping[str, str]) -> str:
    """Return the how-to's block that begins so, with what is another's replaced."""
    (block,) = (
        found
        for each in HOW_TO.read_text().split("```")[1::2]
        if (found := each.removeprefix("\n")).startswith(first)
        and not found[len(first) :].startswith("_")
    )
    for theirs, ours in here.items():
        block = block.replace(theirs, ours)
    return block
