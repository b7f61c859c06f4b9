"""Who the functions are to Kafka and to the API server, and whose certificates they take."""

import base64
import datetime as dt
import logging
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from core.ground.errors import StillwaterError
from core.settings.functions import KafkaIdentity
from handlers.adapters import kafka_identity
from handlers.adapters.eks import EksApi, certificate_ends_at, eks_token, trusting
from handlers.adapters.kafka_identity import KafkaAccess
from tests.unit.certificates import Issued, issue

pytestmark = pytest.mark.usefixtures("signing")

AUTHORITY = issue("ca", authority=None)
ME = "orders-stillwater-tick"
CA = "orders-cluster-ca-cert"
PASSWORD = "s3cret-of-the-tick"


class FakeApi:
    """Secrets by name; what is missing is None, as from the API server."""

    def __init__(self, **secrets: Mapping[str, str]) -> None:
        self.secrets = {name.replace("_", "-"): dict(data) for name, data in secrets.items()}

    def find(self, path: str) -> dict[str, Any] | None:
        found = self.secrets.get(path.removeprefix("/api/v1/namespaces/kafka/secrets/"))
        if found is None:
            return None
        return {"data": {k: base64.b64encode(v.encode()).decode() for k, v in found.items()}}


def access(authentication: str, api: FakeApi, security: str | None = None) -> KafkaAccess:
    by_default = "SSL" if authentication in {"tls", "none"} else "SASL_SSL"
    identity = KafkaIdentity(
        security=security or by_default,
        authentication=authentication,
        namespace="kafka",
        secret=ME,
        authority_secret=CA,
        token_url="https://id.example/token",
    )
    return KafkaAccess(identity, cast("EksApi", api))


def api(**own: str) -> FakeApi:
    fake = FakeApi(orders_cluster_ca_cert={"ca.crt": AUTHORITY.certificate_pem})
    if own:
        fake.secrets[ME] = own
    return fake


def certificate(issued: Issued) -> dict[str, str]:
    return {"user.crt": issued.certificate_pem, "user.key": issued.key_pem, "user.p12": "\x00"}


def test_a_certificate_is_shown_and_a_renewed_one_at_the_next_reading() -> None:
    first, second = issue(ME, AUTHORITY), issue(ME, AUTHORITY)
    fake = api(**certificate(first))
    way_in = access("tls", fake)
    assert isinstance(way_in()["ssl_context"], ssl.SSLContext)
    fake.secrets[ME] = certificate(second)
    assert way_in()["security_protocol"] == "SSL"
    # Of another key: had the first been kept, the two would be no pair.
    fake.secrets[ME] = {**certificate(second), "user.key": first.key_pem}
    with pytest.raises(StillwaterError, match="not a pair of PEM texts"):
        way_in()


def test_a_secret_of_type_kubernetes_tls_is_taken_as_well() -> None:
    mine = issue(ME, AUTHORITY)
    fake = api(**{"tls.crt": mine.certificate_pem, "tls.key": mine.key_pem})
    assert access("tls", fake)()["ssl_context"]


def test_a_password_is_of_the_user_whose_secret_it_is() -> None:
    settings = access("scram-sha-512", api(password=PASSWORD))()
    assert settings["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (settings["sasl_plain_username"], settings["sasl_plain_password"]) == (ME, PASSWORD)
    named = access("scram-sha-512", api(password=PASSWORD, username="ops"))()
    assert named["sasl_plain_username"] == "ops"


def test_a_token_is_fetched_for_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_identity, "_token", lambda url, *pair: f"{url} {pair}")
    fake = api(**{"client-id": "tick", "client-secret": PASSWORD})
    settings = access("oauth", fake)()
    assert settings["sasl_mechanism"] == "OAUTHBEARER"
    said = settings["sasl_oauth_token_provider"].token()
    assert said == f"https://id.example/token ('tick', '{PASSWORD}')"


def test_a_role_of_aws_needs_no_secret() -> None:
    settings = access("aws-iam", FakeApi())()
    assert settings["sasl_mechanism"] == "AWS_MSK_IAM"
    assert settings["security_protocol"] == "SASL_SSL"


def test_in_the_clear_and_without_a_name_nothing_is_read() -> None:
    assert access("none", FakeApi(), "PLAINTEXT")() == {"security_protocol": "PLAINTEXT"}


def test_every_authority_that_may_have_signed_is_trusted() -> None:
    other = issue("older", authority=None)
    fake = api()
    fake.secrets[CA] |= {"ca-2026-01-01T00-00-00Z.crt": other.certificate_pem, "ca.password": "x"}
    assert len(access("none", fake)()["ssl_context"].get_ca_certs()) == 2


EXPIRED = issue(ME, AUTHORITY, ends_at=dt.datetime(2020, 1, 2, 3, 4, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("authentication", "secret", "words"),
    [
        pytest.param("tls", None, (f"Secret {ME}", "is missing", "KafkaUser"), id="no Secret"),
        pytest.param(
            "tls", certificate(EXPIRED), ("ended at 2020-01-02 03:04 UTC", "renewed"), id="expired"
        ),
        pytest.param(
            "tls", {"password": "x"}, ("no user.crt", "authentication tls"), id="no certificate"
        ),
        pytest.param("scram-sha-512", {"user.crt": "x"}, ("no password",), id="no password"),
        pytest.param("oauth", {"client-id": "x"}, ("no client-secret",), id="no client-secret"),
    ],
)
def test_a_secret_that_cannot_be_used_is_one_sentence(
    authentication: str, secret: dict[str, str] | None, words: tuple[str, ...]
) -> None:
    with pytest.raises(StillwaterError) as caught:
        access(authentication, api(**(secret or {})))()
    for word in words:
        assert word in str(caught.value)


def test_without_the_brokers_authorities_nobody_is_trusted() -> None:
    with pytest.raises(StillwaterError, match=f"Secret {CA} in namespace kafka is missing"):
        access("none", FakeApi())()
    fake = api()
    fake.secrets[CA] = {"ca.password": "x"}
    with pytest.raises(StillwaterError, match="holds no certificate"):
        access("none", fake)()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(UnsupportedSaslMechanismError("Enabled mechanisms: ['PLAIN']"),
            "the listener does not offer SCRAM-SHA-512", id="mechanism"),
        pytest.param(SaslAuthenticationFailedError("invalid credentials"),
            f"Kafka refused the user of Secret {ME}", id="password"),
        pytest.param(KafkaConnectionError("socket disconnected"), f"before the user of Secret {ME}",
            id="closed"),
        pytest.param(KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] ..."),
            f"no authority in Secret {CA}", id="authority"),
        pytest.param(KafkaConnectionError("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] ..."),
            f"Kafka refused the certificate of Secret {ME}", id="certificate"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_with_its_remedy(error: Exception, words: str) -> None:
    assert words in access("scram-sha-512", api()).remedy(error)


def test_a_broker_that_is_away_needs_no_other_credentials() -> None:
    assert access("tls", api()).remedy(TimeoutError()) == ""


def test_nothing_secret_is_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    mine = issue(ME, AUTHORITY)
    ways = [
        access("tls", api(**certificate(mine))),
        access("scram-sha-512", api(password=PASSWORD)),
    ]
    with caplog.at_level(logging.DEBUG):
        for way_in in ways:
            way_in()
    shown = caplog.text + repr(ways)
    assert PASSWORD not in shown
    assert "PRIVATE KEY" not in shown


def test_when_a_certificate_ends_is_read_of_both_ways_to_write_a_time() -> None:
    for year in (2049, 2051):  # UTCTime, GeneralizedTime
        ends_at = dt.datetime(year, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
        assert certificate_ends_at(issue("u", AUTHORITY, ends_at).certificate_pem) == ends_at
    for text in ("", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"):
        assert certificate_ends_at(text) is None


def opened(token: str) -> Any:
    encoded = token.removeprefix("k8s-aws-v1.")
    return urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


def test_a_token_is_a_presigned_call_to_sts_that_names_the_cluster() -> None:
    token = eks_token("local-orders", "us-east-1")
    assert token.startswith("k8s-aws-v1.")
    assert not token.endswith("=")
    url = opened(token)
    query = parse_qs(url.query)
    # STS itself, though every other client is pointed at AWS_ENDPOINT_URL.
    assert (url.scheme, url.netloc) == ("https", "sts.us-east-1.amazonaws.com")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Security-Token"] == ["session"]


def test_a_token_in_china_goes_to_its_own_sts() -> None:
    assert opened(eks_token("c", "cn-north-1")).netloc == "sts.cn-north-1.amazonaws.com.cn"


def test_without_credentials_there_is_no_token() -> None:
    class Bare(boto3.Session):
        def get_credentials(self) -> None:
            return None

    with pytest.raises(StillwaterError, match="give the function a role"):
        eks_token("c", "us-east-1", Bare())


HOST = "api.example"


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named("kubernetes"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """Return a server's context and its authority as PEM."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = (
        _builder("kubernetes", authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(HOST, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    file: Path = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, authority.public_bytes(serialization.Encoding.PEM).decode()


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str = HOST) -> None:
    """Carry both sides' bytes to each other until the client is content, or raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=host)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if side is here:
                return
    raise AssertionError("the handshake does not end")


def test_a_server_signed_as_eks_signs_is_believed(server: tuple[ssl.SSLContext, str]) -> None:
    context, authority = server
    shake_hands(trusting(authority, "Its"), context)
    strict = trusting(authority, "Its")
    # What Python 3.13 sets by default, and urllib3 with it.
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLCertVerificationError, match="Authority Key Identifier"):
        shake_hands(strict, context)


def test_another_name_or_authority_is_not_believed(server: tuple[ssl.SSLContext, str]) -> None:
    context, authority = server
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(trusting(authority, "Its"), context, host="other.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ssl.create_default_context(), context)


def test_what_is_no_certificate_is_one_sentence() -> None:
    with pytest.raises(StillwaterError, match="Kafka's certificate authority is not a PEM"):
        trusting("not a certificate", "Kafka's")
    with pytest.raises(StillwaterError, match="Kafka's certificate authority is not a PEM"):
        trusting("", "Kafka's")
