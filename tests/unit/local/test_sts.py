"""EKS tokens: STS's answer to a presigned request, and whom the authenticator maps to whom."""

import base64
import datetime as dt
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.credentials import ReadOnlyCredentials

from core.ground.errors import StillwaterError
from handlers.adapters.eks import eks_token
from local.kubernetes import authenticator
from local.kubernetes.pki import Authority
from local.kubernetes.sts import KeyOwner, PresignedRequest, RefusalError, caller_identity

KEY = ReadOnlyCredentials("AKIAEXAMPLE", "top/secret+key", None)
SESSION = ReadOnlyCredentials("ASIAEXAMPLE", "other secret", "session=token/with+signs")
ACCOUNT = "123456789012"
KNOWN = {
    KEY.access_key: KeyOwner(KEY.secret_key, f"arn:aws:iam::{ACCOUNT}:user/a", ACCOUNT, "AIDA1"),
    SESSION.access_key: KeyOwner(
        SESSION.secret_key,
        f"arn:aws:sts::{ACCOUNT}:assumed-role/r/s",
        ACCOUNT,
        "AROA1:s",
        SESSION.token,
    ),
}


def _request(
    credentials: ReadOnlyCredentials, *, signed_for: str = "one", sent_for: str = "one"
) -> PresignedRequest:
    """Return what the authenticator of cluster `sent_for` sends for a token."""
    session = boto3.Session(*credentials[:3])
    encoded = eks_token(signed_for, "us-east-1", session).partition(".")[2]
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    return PresignedRequest.read(
        url.netloc, f"{url.path}?{url.query}", {"X-K8s-Aws-Id": sent_for, "Accept": "text/json"}
    )


def _now(seconds_later: float = 0) -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds_later)


@pytest.mark.parametrize("credentials", [KEY, SESSION], ids=["user", "session of a role"])
def test_a_token_as_botocore_signs_it_is_honoured(credentials: ReadOnlyCredentials) -> None:
    answer = caller_identity(_request(credentials), KNOWN.get, _now())
    result = answer["GetCallerIdentityResponse"]["GetCallerIdentityResult"]
    known = KNOWN[credentials.access_key]
    assert result == {"Account": ACCOUNT, "Arn": known.arn, "UserId": known.user_id}


@pytest.mark.parametrize(
    ("credentials", "signed_for", "code"),
    [
        (KEY._replace(secret_key="guessed"), "one", "SignatureDoesNotMatch"),
        (KEY, "another", "SignatureDoesNotMatch"),
        (KEY._replace(access_key="AKIAUNKNOWN"), "one", "InvalidClientTokenId"),
        (SESSION._replace(token=None), "one", "InvalidClientTokenId"),
        (SESSION._replace(token="stale"), "one", "InvalidClientTokenId"),
    ],
    ids=[
        "wrong secret",
        "signed for another cluster",
        "unknown key",
        "session without its token",
        "session with a stale token",
    ],
)
def test_what_sts_would_refuse_is_refused_with_its_code(
    credentials: ReadOnlyCredentials, signed_for: str, code: str
) -> None:
    request = _request(credentials, signed_for=signed_for)
    with pytest.raises(RefusalError) as refusal:
        caller_identity(request, KNOWN.get, _now())
    assert refusal.value.code == code
    assert refusal.value.body["Error"]["Code"] == code


@pytest.mark.parametrize("target", ["/", "/?Action=AssumeRole", "/?Action=%ff&Action="])
def test_another_action_is_refused(target: str) -> None:
    request = PresignedRequest.read("sts.amazonaws.com", target, {})
    with pytest.raises(RefusalError) as refusal:
        caller_identity(request, KNOWN.get, _now())
    assert refusal.value.code == "InvalidAction"


@pytest.mark.parametrize(
    ("seconds_later", "honoured"), [(890, True), (910, False), (-290, True), (-310, False)]
)
def test_a_token_is_good_for_fifteen_minutes_and_a_little_clock_skew(
    *, seconds_later: float, honoured: bool
) -> None:
    request = _request(KEY)
    if honoured:
        assert caller_identity(request, KNOWN.get, _now(seconds_later))
        return
    with pytest.raises(RefusalError, match="is not valid now") as refusal:
        caller_identity(request, KNOWN.get, _now(seconds_later))
    assert refusal.value.code == "ExpiredToken"


def test_a_header_that_is_signed_but_not_sent_is_refused() -> None:
    request = _request(KEY)
    bare = PresignedRequest(request.host, request.path, request.query, {"host": request.host})
    with pytest.raises(RefusalError, match="does not match"):
        caller_identity(bare, KNOWN.get, _now())


def test_a_role_that_creates_a_cluster_becomes_its_administrator() -> None:
    arn = "arn:aws:iam::123456789012:role/ci"
    administrator = {"username": "kubernetes-admin", "groups": ["system:masters"]}
    assert authenticator.configuration("one", arn)["server"] == {
        "mapRoles": [{"roleARN": arn, **administrator}]
    }


def test_the_key_of_a_certificate_is_read_by_nobody_else(tmp_path: Path) -> None:
    pair = Authority.create(tmp_path, "ca").issue(tmp_path, "server", ["127.42.250.4"])
    assert pair.key.stat().st_mode & 0o077 == 0


def test_a_creator_that_is_neither_user_nor_role_is_refused() -> None:
    with pytest.raises(StillwaterError, match="is neither an IAM user nor a role"):
        authenticator.configuration("one", "arn:aws:iam::123456789012:root")
