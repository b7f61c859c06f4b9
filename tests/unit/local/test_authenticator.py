from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from cryptography import x509

from core.ground.errors import StillwaterError
from local.kubernetes import authenticator
from local.kubernetes.pki import Authority
from local.place import Place


@pytest.mark.parametrize(
    ("arn", "key", "name"),
    [
        ("arn:aws:iam::123456789012:user/path/admin", "mapUsers", "userARN"),
        ("arn:aws:iam::123456789012:role/ci", "mapRoles", "roleARN"),
    ],
)
def test_the_creator_becomes_administrator_whether_user_or_role(
    arn: str, key: str, name: str
) -> None:
    configuration = authenticator.configuration("one", arn)
    assert configuration["clusterID"] == "one"
    assert configuration["server"] == {
        key: [{name: arn, "username": "kubernetes-admin", "groups": ["system:masters"]}]
    }


def test_a_creator_that_is_neither_user_nor_role_is_refused() -> None:
    with pytest.raises(StillwaterError, match="is neither an IAM user nor a role"):
        authenticator.configuration("one", "arn:aws:iam::123456789012:root")


def test_the_webhook_names_the_twins_own_authenticator_and_authority(tmp_path: Path) -> None:
    place = Place(42, tmp_path)
    place.path("pki").mkdir()
    path = authenticator.write_webhook_config(place, tmp_path / "ca.crt")
    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    assert cluster == {
        "certificate-authority": str(tmp_path / "ca.crt"),
        "server": "https://127.42.250.7:21362/authenticate",
    }


def test_a_serving_certificate_names_its_hosts_and_is_signed_by_its_authority(
    tmp_path: Path,
) -> None:
    authority = Authority.create(tmp_path, "ca")
    pair = authority.issue(tmp_path, "server", ["127.42.250.4", "kubernetes.default.svc"])
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    certificate.verify_directly_issued_by(authority.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.42.250.4"]
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default.svc"]
    assert pair.key.stat().st_mode & 0o077 == 0
