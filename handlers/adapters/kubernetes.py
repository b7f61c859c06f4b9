"""The Kubernetes API of an EKS cluster: five lists, a Secret, and two marks on a Node.

Every request carries a token that STS signed.

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

from core.errors import Conflict, StillwaterError
from core.naming import (
    CLUSTER_LABEL,
    EBS_CSI_DRIVER,
    NODE_POOL_LABEL,
    POOL_LABEL,
    ZONE_LABEL,
    cluster_ca_secret,
    node_id_of_pod,
)
from core.observations import BudgetView, NodeView, PodView
from handlers.adapters.tls import trusting

Json = dict[str, Any]

# STS accepts the signature for a minute; EKS the token for 15 from then on.
TOKEN_SECONDS = 60
PAGE_SIZE = 500
# Cluster Autoscaler takes no node that says so; the second says for whom, so that nobody else's
# mark is ever taken off.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SPARE_ANNOTATION = "stillwater.dev/spare-for"
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}
_TIMEOUT = urllib3.Timeout(connect=3.0, read=10.0)


class Nodes(Protocol):
    """What the handlers ask of Kubernetes."""

    def nodes(self) -> tuple[NodeView, ...]:
        """Return every node."""

    def kafka_pods(self) -> tuple[PodView, ...]:
        """Return the cluster's Kafka pods, scheduled or not."""

    def attachments(self) -> dict[str, tuple[str, ...]]:
        """Return the attached EBS volumes by node name."""

    def budgets(self) -> tuple[BudgetView, ...]:
        """Return the disruption budgets over Kafka's pods."""

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        """Keep a node from Cluster Autoscaler for an incident; None leaves it to it again."""

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        """Place the out-of-service taint on an instance's Node, or take it off.

        A Node that is gone, or another instance's by now, is left alone. Raises Conflict when
        somebody changed it meanwhile.
        """


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
        sent = urlencode({k: v for k, v in query.items() if v})
        return self._send("GET", f"{path}?{sent}")

    def text(self, path: str, timeout_seconds: float) -> str:
        """Return what is answered as text, within a bound of its own: a pod behind the proxy."""
        timeout = urllib3.Timeout(total=timeout_seconds)
        answer = self._request("GET", path, {"Accept": "text/plain"}, timeout=timeout)
        return _content(answer, "GET", path).decode(errors="replace")

    def find(self, path: str) -> Json | None:
        """Return one object, or None where there is none."""
        return self._send("GET", path, missing={}) or None

    def merge(self, path: str, body: Json) -> None:
        """Merge a change into an object; one that is gone is left alone.

        Raises Conflict when the change names a version that is no longer the object's.
        """
        self._send("PATCH", path, body=body, missing={})

    def _send(
        self, method: str, path: str, *, body: Json | None = None, missing: Json | None = None
    ) -> Json:
        """Return the decoded answer; `missing` is what an object that is not there answers."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        sent = None if body is None else json.dumps(body).encode()
        answer = self._request(method, path, headers, body=sent)
        if answer.status == 404 and missing is not None:
            return missing
        decoded: Json = json.loads(_content(answer, method, path))
        return decoded

    def _request(
        self, method: str, path: str, headers: Json, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        # A token costs one signature, no call, so each request carries a fresh one.
        token = eks_token(self._eks_cluster, self._region, self._session)
        try:
            return self._pool.request(
                method,
                f"{self._endpoint}{path}",
                headers={"Authorization": f"Bearer {token}", **headers},
                **options,
            )
        except urllib3.exceptions.HTTPError as error:
            raise StillwaterError(
                f"The Kubernetes API at {self._endpoint} did not answer "
                f"{_asked(method, path)}: {error}"
            ) from None


def _asked(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


def _content(answer: urllib3.BaseHTTPResponse, method: str, path: str) -> bytes:
    """Return what was answered; raises StillwaterError, or Conflict, for all but 200."""
    asked = _asked(method, path)
    if answer.status == 409:
        raise Conflict(f"The object of {asked} was changed by somebody else meanwhile.")
    if answer.status != 200:
        said = answer.data[:300].decode(errors="replace")
        raise StillwaterError(f"The Kubernetes API answered {answer.status} to {asked}: {said}")
    return answer.data


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

    def budgets(self) -> tuple[BudgetView, ...]:
        path = f"/apis/policy/v1/namespaces/{quote(self._namespace)}/poddisruptionbudgets"
        found = list(self._api.list(path))
        if not found:
            return ()
        pods = list(self._kafka_items())
        return tuple(_budget(item, pods) for item in found)

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        marks = {
            SCALE_DOWN_DISABLED: None if incident_id is None else "true",
            SPARE_ANNOTATION: incident_id,
        }
        self._patch_node(node, {"metadata": {"annotations": marks}})

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        path = f"/api/v1/nodes/{quote(node)}"
        found = self._api.find(path)
        if found is None or _instance_of(found) != instance_id:
            return
        taints = found["spec"].get("taints") or []
        others = [t for t in taints if t["key"] != OUT_OF_SERVICE["key"]]
        wanted = [*others, OUT_OF_SERVICE] if tainted else others
        if len(wanted) == len(taints):
            return
        # The list is replaced as a whole, so it is replaced in the version it was read in.
        version = found["metadata"]["resourceVersion"]
        self._patch_node(
            node, {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
        )

    def _patch_node(self, node: str, body: Json) -> None:
        self._api.merge(f"/api/v1/nodes/{quote(node)}", body)

    def _kafka_items(self) -> Iterator[Json]:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods"
        return self._api.list(path, labelSelector=f"{CLUSTER_LABEL}={self._kafka_cluster}")

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
    marks = item["metadata"].get("annotations") or {}
    return NodeView(
        name=item["metadata"]["name"],
        instance_id=_instance_of(item),
        zone=labels.get(ZONE_LABEL),
        pool=labels.get(NODE_POOL_LABEL),
        ready=_condition(item, "Ready"),
        schedulable=not spec.get("unschedulable", False),
        csi_ready=EBS_CSI_DRIVER in drivers,
        spare_for=marks.get(SPARE_ANNOTATION),
        out_of_service=any(
            taint["key"] == OUT_OF_SERVICE["key"] for taint in spec.get("taints") or ()
        ),
    )


def _instance_of(node: Json) -> str | None:
    """Return the instance that a Node stands for: aws:///<zone>/<instance id>."""
    provider_id: str = node.get("spec", {}).get("providerID", "")
    return provider_id.rpartition("/")[2] or None


def _budget(item: Json, pods: list[Json]) -> BudgetView:
    selector = item.get("spec", {}).get("selector") or {}
    return BudgetView(
        name=item["metadata"]["name"],
        pods=frozenset(pod["metadata"]["name"] for pod in pods if _selects(selector, pod)),
        disruptions_allowed=item.get("status", {}).get("disruptionsAllowed", 0),
    )


def _selects(selector: Json, pod: Json) -> bool:
    """Say whether a label selector takes a pod; an empty one takes all of its namespace."""
    labels = pod["metadata"].get("labels", {})
    if any(labels.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Json, labels: Json) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]


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
        stopping="deletionTimestamp" in metadata,
    )
