"""handlers.adapters.eks: who the functions are to the API server."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from core.ground.errors import StillwaterError
from handlers.adapters.eks import eks_token

pytestmark = pytest.mark.usefixtures("signing")


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
        def get_credentials(self) -> None:  # type: ignore[override]
            return None

    with pytest.raises(StillwaterError, match="give the function a role"):
        eks_token("c", "us-east-1", Bare())
