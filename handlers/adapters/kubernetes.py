"""The Kubernetes API of an EKS cluster: four lists and a Secret, read with a token STS signed.

No Kubernetes client: importing one costs a Lambda 1.7 s and 140 MB (research: local-tooling 5).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import boto3
import urllib3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from core.errors import StillwaterError
from core.naming import (
    CLUSTER_LABEL,
    EBS_CSI_DRIVER,
    NODE_POOL_LABEL,
    POOL_LABEL,
    ZONE_LABEL,
    cluster_ca_secret,
    node_id_of_pod,
)
from core.observations import NodeView, PodView
from handlers.adapters.tls import trusting

Json = dict[str, Any]

# STS accepts the signature for a minute; EKS the token for 15 from then on.
TOKEN_SECONDS = 60
PAGE_SIZE = 500
_TIMEOUT = urllib3.Timeout(connect=3.0, read=10.0)


class Nodes(Protocol):
    """What the handlers read from Kubernetes."""

    def nodes(self) -> tuple[NodeView, ...]:
        """Return every node."""

    def kafka_pods(self) -> tuple[PodView, ...]:
        """Return the cluster's Kafka pods, scheduled or not."""

    def attachments(self) -> dict[str, tuple[str, ...]]:
        """Return the attached EBS volumes by node name."""


def eks_token(cluster: str, region: str, session: boto3.Session | None = None) -> str:
    """Return a bearer token: a presigned GetCallerIdentity that names the cluster.

    The host is always STS itself, whatever endpoint other clients are pointed at: the
    authenticator accepts no other.
    """
    credentials = (session or boto3.Session()).get_credentials()
    if credentials is None:
        raise StillwaterError(
            "There are no AWS credentials to sign a token for EKS with; give the function a role."
        )
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    query = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
    request = AWSRequest(
        method="GET",
        url=f"https://sts.{region}.{domain}/?{query}",
        headers={"x-k8s-aws-id": cluster},
    )
    signer = SigV4QueryAuth(
        credentials.get_frozen_credentials(), "sts", region, expires=TOKEN_SECONDS
    )
    signer.add_auth(request)
    encoded = base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")
    return f"k8s-aws-v1.{encoded}"


class EksApi:
    """Reads an EKS cluster's API server, TLS verified against the cluster's own CA."""

    def __init__(
        self,
        *,
        endpoint: str,
        ca_pem: str,
        eks_cluster: str,
        region: str,
        session: boto3.Session | None = None,
        connections: int = 1,
    ) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._ca_pem = ca_pem
        self._eks_cluster = eks_cluster
        self._region = region
        self._session = session
        self._connections = connections

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        context = trusting(self._ca_pem, "The Kubernetes API's")
        return urllib3.PoolManager(
            ssl_context=context, timeout=_TIMEOUT, retries=False, maxsize=self._connections
        )

    def list(self, path: str, **query: str) -> Iterator[Json]:
        """Yield the items of a list, page after page."""
        following = ""
        while True:
            answer = self.get(path, {**query, "limit": str(PAGE_SIZE), "continue": following})
            yield from answer.get("items") or ()
            following = answer.get("metadata", {}).get("continue", "")
            if not following:
                return

    def get(self, path: str, query: Mapping[str, str]) -> Json:
        # A token costs one signature, no call, so each request carries a fresh one.
        token = eks_token(self._eks_cluster, self._region, self._session)
        sent = urlencode({k: v for k, v in query.items() if v})
        try:
            answer = self._pool.request(
                "GET",
                f"{self._endpoint}{path}?{sent}",
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            )
        except urllib3.exceptions.HTTPError as error:
            raise StillwaterError(
                f"The Kubernetes API at {self._endpoint} did not answer GET {path}: {error}"
            ) from None
        if answer.status != 200:
            said = answer.data[:300].decode(errors="replace")
            raise StillwaterError(
                f"The Kubernetes API answered {answer.status} to GET {path}: {said}"
            )
        decoded: Json = json.loads(answer.data)
        return decoded


class EksNodes:
    """What the handlers read from an EKS cluster."""

    def __init__(
        self,
        *,
        endpoint: str,
        ca_pem: str,
        eks_cluster: str,
        region: str,
        namespace: str,
        kafka_cluster: str,
    ) -> None:
        self._api = EksApi(endpoint=endpoint, ca_pem=ca_pem, eks_cluster=eks_cluster, region=region)
        self._namespace = namespace
        self._kafka_cluster = kafka_cluster

    def nodes(self) -> tuple[NodeView, ...]:
        drivers = {
            item["metadata"]["name"]: _drivers(item)
            for item in self._api.list("/apis/storage.k8s.io/v1/csinodes")
        }
        return tuple(
            _node(item, drivers.get(item["metadata"]["name"], frozenset()))
            for item in self._api.list("/api/v1/nodes")
        )

    def kafka_pods(self) -> tuple[PodView, ...]:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods"
        items = self._api.list(path, labelSelector=f"{CLUSTER_LABEL}={self._kafka_cluster}")
        return tuple(pod for item in items if (pod := _pod(item)) is not None)

    def attachments(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for item in self._api.list("/apis/storage.k8s.io/v1/volumeattachments"):
            spec = item["spec"]
            if spec["attacher"] == EBS_CSI_DRIVER:
                volume = spec["source"].get("persistentVolumeName") or item["metadata"]["name"]
                found[spec["nodeName"]] = (*found.get(spec["nodeName"], ()), volume)
        return found

    def kafka_authorities(self) -> str:
        """Return the authorities that may have signed a broker's certificate, as PEM.

        Strimzi keeps those before `ca.crt` beside it until no broker needs them any more.
        """
        name = cluster_ca_secret(self._kafka_cluster)
        secret = self._api.get(f"/api/v1/namespaces/{quote(self._namespace)}/secrets/{name}", {})
        data = secret.get("data") or {}
        found = [
            base64.b64decode(data[key]).decode() for key in sorted(data) if key.endswith(".crt")
        ]
        if not found:
            raise StillwaterError(
                f"Secret {name} in namespace {self._namespace} holds no certificate; Strimzi's "
                f"cluster operator writes it."
            )
        return "\n".join(found)


def _drivers(csi_node: Json) -> frozenset[str]:
    return frozenset(d["name"] for d in csi_node["spec"].get("drivers") or ())


def _condition(item: Json, kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def _node(item: Json, drivers: frozenset[str]) -> NodeView:
    labels, spec = item["metadata"].get("labels", {}), item.get("spec", {})
    provider_id = spec.get("providerID", "")
    return NodeView(
        name=item["metadata"]["name"],
        # aws:///<zone>/<instance id>
        instance_id=provider_id.rpartition("/")[2] or None,
        zone=labels.get(ZONE_LABEL),
        pool=labels.get(NODE_POOL_LABEL),
        ready=_condition(item, "Ready"),
        schedulable=not spec.get("unschedulable", False),
        csi_ready=EBS_CSI_DRIVER in drivers,
    )


def _pod(item: Json) -> PodView | None:
    """Read a Kafka pod; a pod of the cluster that is no Kafka node is None."""
    metadata = item["metadata"]
    labels = metadata.get("labels", {})
    roles = [r for r in ("broker", "controller") if labels.get(f"strimzi.io/{r}-role") == "true"]
    node_id = node_id_of_pod(metadata["name"])
    over = item.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    # The entity operator and exporters carry the cluster's label, and no pool.
    if node_id is None or over or POOL_LABEL not in labels:
        return None
    return PodView(
        name=metadata["name"],
        node_id=node_id,
        role="combined" if len(roles) == 2 else next(iter(roles), None),
        node_name=item.get("spec", {}).get("nodeName"),
        ready=_condition(item, "Ready") and "deletionTimestamp" not in metadata,
    )
