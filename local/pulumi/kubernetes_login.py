"""Logs in to a cluster the way its kubeconfig says, with the AWS identity of the environment.

An EKS kubeconfig asks `aws eks get-token` for a token. The twin needs no AWS command line: the
same token is made here. There is no other way in: an identity that the cluster's access entries
do not know is refused, as it is on EKS.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
import yaml

from core.ground.errors import InvalidInput, StillwaterError
from handlers.adapters.eks import eks_token
from local.kubernetes.client import Api, ApiError

# For an API server that does not answer. A refused identity is hardly asked about again: a cluster
# is there only once its authenticator is (local.pulumi.aws_eks).
PATIENCE_SECONDS = 20.0
REFUSED_SECONDS = 1.0
RETRY_SECONDS = 0.3
# EKS refuses a token 15 minutes after it was signed; a fresh one costs nothing.
RENEW_AFTER_SECONDS = 600
DEFAULT_REGION = "us-east-1"
WHO_AM_I = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@dataclass(frozen=True, slots=True)
class KubeconfigCluster:
    """What a kubeconfig's current context says."""

    server: str
    ca_pem: str
    eks_name: str
    region: str


def _entry(config: Mapping[str, Any], kind: str, name: str | None) -> Mapping[str, Any]:
    entries = [entry for entry in config.get(f"{kind}s") or [] if entry.get("name") == name]
    if not entries:
        raise InvalidInput([f"The kubeconfig has no {kind} named {name!r}."])
    found: Mapping[str, Any] = entries[0][kind]
    return found


def _option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of `--name value`."""
    return dict(itertools.pairwise(arguments)).get(name)


def read_kubeconfig(text: str | Mapping[str, Any]) -> KubeconfigCluster:
    """Read the current context of a kubeconfig, given as text or already decoded."""
    config = yaml.safe_load(text) if isinstance(text, str) else text
    if not isinstance(config, Mapping):
        raise InvalidInput(["The kubeconfig given to the Kubernetes provider is not a mapping."])
    context = _entry(config, "context", config.get("current-context"))
    cluster = _entry(config, "cluster", context.get("cluster"))
    user = _entry(config, "user", context.get("user"))
    server = cluster.get("server")
    try:
        ca_pem = base64.b64decode(cluster["certificate-authority-data"], validate=True).decode()
    except (KeyError, TypeError, ValueError, binascii.Error):
        ca_pem = ""
    if not server or "BEGIN CERTIFICATE" not in ca_pem:
        problem = (
            f"The kubeconfig's cluster {context.get('cluster')!r} lacks a server or a "
            f"certificate-authority-data in base64 PEM."
        )
        raise InvalidInput([problem])
    command = user.get("exec") or {}
    arguments = [str(argument) for argument in command.get("args") or []]
    name = _option(arguments, "--cluster-name")
    if name is None:
        problem = (
            f"The kubeconfig's user {context.get('user')!r} has no command "
            f"`aws eks get-token --cluster-name NAME`; the twin's provider knows no other."
        )
        raise InvalidInput([problem])
    return KubeconfigCluster(server, ca_pem, name, _option(arguments, "--region") or DEFAULT_REGION)


class Login:
    """One identity at one cluster, the environment's unless told, with a token renewed in time."""

    def __init__(self, cluster: KubeconfigCluster, session: boto3.Session | None = None) -> None:
        self.cluster = cluster
        self._session = session or boto3.Session()
        self._lock = threading.Lock()
        self._welcome = False
        self._token, self._token_made_at = "", 0.0
        self._api = Api(cluster.server, self.token, ca_pem=cluster.ca_pem, connections=32)

    def token(self) -> str:
        """Return a token that is good for some minutes more."""
        now = time.monotonic()
        if not self._token or now - self._token_made_at > RENEW_AFTER_SECONDS:
            self._token = eks_token(self.cluster.eks_name, self.cluster.region, self._session)
            self._token_made_at = now
        return self._token

    @property
    def api(self) -> Api:
        """The cluster's API, once it has been seen to know us."""
        with self._lock:
            if not self._welcome:
                self._knock()
                self._welcome = True
        return self._api

    def _knock(self) -> None:
        """Ask the cluster who we are until it knows."""
        began = time.monotonic()
        patience = {0: PATIENCE_SECONDS, 401: REFUSED_SECONDS}
        while True:
            try:
                self._api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", WHO_AM_I)
            except ApiError as error:
                if time.monotonic() - began >= patience.get(error.status, 0.0):
                    raise self._explain(error) from error
                time.sleep(RETRY_SECONDS)
            else:
                return

    def _explain(self, error: ApiError) -> StillwaterError:
        if error.status != 401:
            return error
        shown = self._session.get_credentials()
        return StillwaterError(
            f"The cluster {self.cluster.eks_name} does not accept the AWS access key "
            f"{shown and shown.access_key} (401). It is neither the cluster's creator nor in "
            f"one of its access entries, or its secret is wrong. Run as the identity that created "
            f"the cluster, or add an access entry for this one."
        )
