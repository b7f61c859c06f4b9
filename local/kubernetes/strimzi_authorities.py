"""A Kafka's two authorities and what they sign, in Secrets as Strimzi keeps them.

`<cluster>-cluster-ca(-cert)` signs what brokers, controllers and operators show each other,
`<cluster>-clients-ca(-cert)` what users show, `<cluster>-trustbundle` holds what nodes trust. An
authority whose key is replaced stays trusted beside the new one, and nobody shows a certificate of
the new one before every pod trusts it: pods roll once to trust it, and again to show it. Strimzi
drops the old one afterwards; here it stays.

Everything is PEM text in memory, because Secrets are where it lives; keys are PKCS #8, the one form
Kafka reads. Keys are of an elliptic curve, where Strimzi's are RSA: those cost a second each.
"""

from __future__ import annotations

import base64
import datetime as dt
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from core.ground import naming
from local.kubernetes import pki
from local.kubernetes.client import Api, find
from local.kubernetes.strimzi_model import ORGANIZATION, KafkaCluster, KafkaPodNode
from local.kubernetes.strimzi_objects import Object, OperatorObjects
from local.kubernetes.strimzi_resources import Rendered, digest, owned_object

VALID = dt.timedelta(days=365)  # Strimzi's default, of authorities and of what they sign


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, as PEM texts."""

    certificate: str
    key: str = field(repr=False)


def new_authority(name: str) -> Issued:
    """Make an authority of Strimzi's."""
    key = pki.new_key()
    subject = _subject(name, ORGANIZATION)
    builder = pki.builder(subject, subject, key, VALID, ca=True)
    return _issued(builder.sign(key, hashes.SHA256()), key)


def component_certificate(signer: Issued, name: str, hosts: Sequence[str] = ()) -> Issued:
    """Make the certificate of a part of the cluster; with hosts it serves them as well."""
    return _signed_certificate(signer, _subject(name, ORGANIZATION), hosts)


def user_certificate(signer: Issued, name: str) -> Issued:
    """Make a user's certificate: to Kafka it is User:CN=<name>."""
    return _signed_certificate(signer, _subject(name, None), ())


def hosts_of(certificate: str) -> set[str]:
    """Return the names and addresses a certificate serves."""
    found = x509.load_pem_x509_certificate(certificate.encode()).extensions
    try:
        named = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = named.get_values_for_type(x509.IPAddress)
    return {*named.get_values_for_type(x509.DNSName), *(str(each) for each in addresses)}


def is_signed_by(certificate: str, signer: str) -> bool:
    """Say whether one certificate was signed with the key of another."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.encode())
        loaded.verify_directly_issued_by(x509.load_pem_x509_certificate(signer.encode()))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def ends_at(certificate: str) -> dt.datetime:
    """Return when a certificate ends."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def key_store(issued: Issued, alias: str, password: str) -> bytes:
    """Return certificate and key as the PKCS #12 store that Java reads."""
    return pkcs12.serialize_key_and_certificates(
        alias.encode(),
        _key(issued),
        x509.load_pem_x509_certificate(issued.certificate.encode()),
        None,
        serialization.BestAvailableEncryption(password.encode()),
    )


def trust_store(certificates: Iterable[str], password: str) -> bytes:
    """Return authorities as the PKCS #12 store that Java trusts."""
    entries = [
        pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(each.encode()), b"ca-%d" % number)
        for number, each in enumerate(certificates)
    ]
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_java_truststore(entries, encryption)


def _subject(name: str, organization: str | None) -> x509.Name:
    # Java reads the parts from the last to the first: CN=<name>,O=<organization>.
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _signed_certificate(signer: Issued, subject: x509.Name, hosts: Sequence[str]) -> Issued:
    above = x509.load_pem_x509_certificate(signer.certificate.encode())
    key = pki.new_key()
    builder = pki.builder(subject, above.subject, key, VALID)
    if hosts:
        names = x509.SubjectAlternativeName([pki.alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _issued(builder.sign(_key(signer), hashes.SHA256()), key)


def _key(issued: Issued) -> ec.EllipticCurvePrivateKey:
    loaded = serialization.load_pem_private_key(issued.key.encode(), None)
    return cast("ec.EllipticCurvePrivateKey", loaded)  # as all of ours


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    shown = certificate.public_bytes(serialization.Encoding.PEM)
    return Issued(shown.decode(), pki.pem(key, serialization.PrivateFormat.PKCS8).decode())


FORCE_REPLACE = "strimzi.io/force-replace"
KEY_GENERATION = "strimzi.io/ca-key-generation"
CERTIFICATE_GENERATION = "strimzi.io/ca-cert-generation"
CLUSTER_KEY_GENERATION = "strimzi.io/cluster-ca-key-generation"
CLUSTER_GENERATION = "strimzi.io/cluster-ca-cert-generation"
CLIENTS_GENERATION = "strimzi.io/clients-ca-cert-generation"
CERTIFICATE_HASH = "strimzi.io/server-cert-hash"
OPERATOR = "cluster-operator"
AUTHORITY_COMPONENT = "certificate-authority"
Annotations = dict[str, str]


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority as its Secrets hold it; `trusted` are its certificates, older ones included."""

    current: Issued
    generation: int
    trusted: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Signer:
    """An authority, and whether every pod trusts it: before that nobody may show what it signs."""

    authority: Authority
    trusted_by_all: bool

    def stands_for(self, issued: Issued, hosts: Sequence[str]) -> bool:
        """Say whether a certificate may stay: it serves these hosts, and its signer is no older."""
        is_current = is_signed_by(issued.certificate, self.authority.current.certificate)
        serves = hosts_of(issued.certificate) == set(hosts)
        return serves and (is_current or not self.trusted_by_all)


class Authorities:
    """Makes, replaces and hands out what the cluster operator issues."""

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        self._api, self._objects = api, objects

    def bring(self, cluster: KafkaCluster, live: Iterable[Object]) -> dict[str, Annotations]:
        """Issue what is missing or outdated; return what each pod is marked with for it."""
        if not cluster.asks:
            return {cluster.pod(node): {} for node in cluster.nodes}
        of_cluster = self._authority(cluster, naming.cluster_ca_secret(cluster.name))
        of_clients = self._authority(cluster, naming.clients_ca_secret(cluster.name))
        everybody_trusts = all(
            _generation(pod, CLUSTER_GENERATION) >= of_cluster.generation for pod in live
        )
        trusted = {
            CLUSTER_GENERATION: str(of_cluster.generation),
            CLIENTS_GENERATION: str(of_clients.generation),
        }
        bundle = {
            f"{whose}-{name}": text
            for whose, each in (("cluster", of_cluster), ("clients", of_clients))
            for name, text in each.trusted.items()
        }
        self._apply(cluster, f"{cluster.name}-trustbundle", bundle, trusted, "trust-bundle")
        signer = Signer(of_cluster, everybody_trusts)
        self._certificate(cluster, operator_secret(cluster.name), OPERATOR, signer)
        marks = {}
        for node in cluster.nodes:
            name, component = cluster.pod(node), naming.kafka_component(cluster.name)
            hosts = sorted(served_hosts(cluster, node))
            issued = self._certificate(cluster, name, component, signer, hosts)
            marks[name] = {
                **trusted,
                CLUSTER_KEY_GENERATION: str(of_cluster.generation),
                CERTIFICATE_HASH: digest(issued.certificate),
            }
        return marks

    def shown(self, cluster: KafkaCluster) -> list[str]:
        """Return the certificates by which clients know the brokers, as the status shows them."""
        key = self._secret(cluster, f"{cluster.name}-cluster-ca")
        found = authority_of(key, self._secret(cluster, naming.cluster_ca_secret(cluster.name)))
        return [] if found is None else [found.current.certificate]

    def _authority(self, cluster: KafkaCluster, certificate_secret: str) -> Authority:
        key_secret = certificate_secret.removesuffix("-cert")
        key = self._secret(cluster, key_secret)
        known = authority_of(key, self._secret(cluster, certificate_secret))
        if known is not None and not _is_forced(key):
            return known
        fresh = replace_authority(known, key_secret.removeprefix(f"{cluster.name}-"))
        generation = str(fresh.generation)
        password = secrets.token_urlsafe(9)
        store = trust_store(fresh.trusted.values(), password)
        self._apply(
            cluster,
            certificate_secret,
            {**fresh.trusted, "ca.p12": store, "ca.password": password},
            {CERTIFICATE_GENERATION: generation},
            AUTHORITY_COMPONENT,
        )
        key_data = {"ca.key": fresh.current.key}
        self._apply(
            cluster, key_secret, key_data, {KEY_GENERATION: generation}, AUTHORITY_COMPONENT
        )
        if _is_forced(key):
            path = _path(cluster.namespace, key_secret)
            self._api.merge(path, {"metadata": {"annotations": {FORCE_REPLACE: None}}})
        return fresh

    def _certificate(
        self,
        cluster: KafkaCluster,
        secret: str,
        name: str,
        signer: Signer,
        hosts: Sequence[str] = (),
    ) -> Issued:
        """Return a component's certificate: the one it has while that serves, else another."""
        file = OPERATOR if name == OPERATOR else secret
        stored = data_of(self._secret(cluster, secret))
        if f"{file}.crt" in stored:
            issued = Issued(stored[f"{file}.crt"], stored[f"{file}.key"])
            if signer.stands_for(issued, hosts):
                return issued
        issued = component_certificate(signer.authority.current, name, hosts)
        data = {f"{file}.crt": issued.certificate, f"{file}.key": issued.key}
        marked = {CLUSTER_GENERATION: str(signer.authority.generation)}
        self._apply(cluster, secret, data, marked, "strimzi" if name == OPERATOR else "kafka")
        return issued

    def _secret(self, cluster: KafkaCluster, name: str) -> Object | None:
        return find(self._api, _path(cluster.namespace, name))

    def _apply(
        self,
        cluster: KafkaCluster,
        name: str,
        data: Mapping[str, str | bytes],
        marked: Annotations,
        component: str,
    ) -> None:
        rendered = owned_object(cluster, "v1", "Secret", name)
        rendered["metadata"]["annotations"] = marked
        if component != "kafka":
            rendered["metadata"]["labels"] |= {
                "app.kubernetes.io/name": component,
                "strimzi.io/component-type": component,
                "strimzi.io/name": "strimzi",
            }
        self._objects.apply(with_data(rendered, data))


def operator_secret(cluster: str) -> str:
    """Return where the cluster operator's own certificate is."""
    return f"{cluster}-cluster-operator-certs"


def served_hosts(cluster: KafkaCluster, node: KafkaPodNode) -> set[str]:
    """Return every name a node is dialled by: its own, and those of the Services and balancers."""
    names = {cluster.host(node), cluster.service_host(node)}
    if not node.is_broker:
        return names
    services = [
        naming.bootstrap_service(cluster.name),
        naming.headless_service(cluster.name),
    ]
    for listener in cluster.listeners:
        names |= {
            *listener.alternative_names,
            listener.host_of(node.node_id) or cluster.service_host(node),
        }
        if listener.type == "cluster-ip":
            port = listener.port
            services += [
                naming.listener_bootstrap_service(cluster.name, listener.name, port),
                naming.listener_broker_service(
                    cluster.name, node.pool, node.node_id, listener.name, port
                ),
            ]
    return names | {
        f"{service}{rest}"
        for service in services
        for rest in (
            *("", f".{cluster.namespace}", f".{cluster.namespace}.svc"),
            f".{cluster.namespace}.svc.cluster.local",
        )
    }


def data_of(secret: Object | None) -> dict[str, str]:
    """Return what a Secret holds as text."""
    data = ((secret or {}).get("data") or {}).items()
    return {k: base64.b64decode(v).decode() for k, v in data if not k.endswith(".p12")}


def with_data(rendered: Rendered, data: Mapping[str, str | bytes]) -> Rendered:
    """Return a Secret with its data as the API takes it."""
    encoded = {
        key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
        for key, value in data.items()
    }
    return {**rendered, "type": "Opaque", "data": encoded}


def authority_of(key_secret: Object | None, certificate_secret: Object | None) -> Authority | None:
    """Return an authority of its two Secrets; None where one is missing or they are no pair."""
    key, held = data_of(key_secret), data_of(certificate_secret)
    generations = {
        _generation(key_secret, KEY_GENERATION),
        _generation(certificate_secret, CERTIFICATE_GENERATION),
    }
    if "ca.key" not in key or "ca.crt" not in held or len(generations) > 1:
        return None
    trusted = {name: text for name, text in held.items() if name.endswith(".crt")}
    return Authority(Issued(held["ca.crt"], key["ca.key"]), generations.pop(), trusted)


def replace_authority(known: Authority | None, name: str) -> Authority:
    """Return a new authority that stands beside the one before it."""
    if known is None:
        fresh = new_authority(f"{name} v0")
        return Authority(fresh, 0, {"ca.crt": fresh.certificate})
    generation = known.generation + 1
    fresh = new_authority(f"{name} v{generation}")
    ended = ends_at(known.current.certificate).strftime("%Y-%m-%dT%H-%M-%SZ")
    older = {key: text for key, text in known.trusted.items() if key != "ca.crt"}
    older[f"ca-{ended}.crt"] = known.current.certificate
    return Authority(fresh, generation, {"ca.crt": fresh.certificate, **older})


def _is_forced(secret: Object | None) -> bool:
    return _annotations(secret).get(FORCE_REPLACE) == "true"


def _generation(item: Object | None, annotation: str) -> int:
    return int(_annotations(item).get(annotation, "0"))


def _annotations(item: Object | None) -> Mapping[str, str]:
    return ((item or {}).get("metadata") or {}).get("annotations") or {}


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"
