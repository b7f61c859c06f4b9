"""Decides what a person can do where an answer is refused or missing: one sentence per reason."""

from __future__ import annotations

from botocore.exceptions import (
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from infra.eks.api import ApiError

LOGIN = "log in again (such as `aws sso login`), or name another --profile; then survey again"
ENDED = frozenset(
    {
        *("AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"),
        *("InvalidAccessKeyId", "RequestExpired", "UnrecognizedClientException"),
        *("SignatureDoesNotMatch", "InvalidSignatureException", "OptInRequired"),
    }
)
WITHOUT_LOGIN = (
    *(NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, ProfileNotFound),
    *(SSOError, TokenRetrievalError),
)
UNAUTHORIZED = 401


def way_out(error: Exception) -> str:
    """Return what to do about an error; empty: nothing that is more than usual."""
    if isinstance(error, WITHOUT_LOGIN):
        return LOGIN
    if isinstance(error, ClientError):
        return _of_aws(error)
    if isinstance(error, ApiError):
        return _of_kubernetes(error)
    if isinstance(error, ConnectionError | HTTPClientError):
        return "let this machine reach AWS's endpoints in that region, and survey again"
    return ""


def _of_aws(error: ClientError) -> str:
    said = error.response["Error"]
    if said.get("Code") in ENDED:
        return LOGIN
    message = str(said.get("Message") or "")
    for policy in ("service control policy", "resource control policy", "permissions boundary"):
        if policy in message:
            return (
                f"ask whoever keeps the {policy} that denies it, since no right of the caller's "
                f"own goes beyond that; then survey again"
            )
    return ""


def _of_kubernetes(error: ApiError) -> str:
    if error.status == UNAUTHORIZED:
        return LOGIN
    if not error.status:
        return (
            "reach its API server: from inside its VPC or by a VPN where its endpoint is private, "
            "then survey again"
        )
    return ""
