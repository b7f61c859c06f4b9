"""Makes the token by which an AWS identity logs in to an EKS cluster, as `aws eks get-token` does.

The token is a presigned GetCallerIdentity that names the cluster in a signed header; the cluster's
authenticator sends it to STS and believes what STS says about the caller.
"""

from __future__ import annotations

import base64

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

CLUSTER_HEADER = "x-k8s-aws-id"
PREFIX = "k8s-aws-v1."
URL_VALID_SECONDS = 60
# EKS refuses a token 15 minutes after it was signed; a fresh one costs nothing.
RENEW_AFTER_SECONDS = 600


def token(cluster_name: str, credentials: ReadOnlyCredentials, region: str) -> str:
    """Return a bearer token for one cluster; nothing is sent to anybody."""
    request = AWSRequest(
        method="GET",
        url=f"https://sts.{region}.amazonaws.com/",
        params={"Action": "GetCallerIdentity", "Version": "2011-06-15"},
        headers={CLUSTER_HEADER: cluster_name},
    )
    SigV4QueryAuth(credentials, "sts", region, expires=URL_VALID_SECONDS).add_auth(request)
    return PREFIX + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")
