"""The AWS identity a pod acts under: its Pod Identity role where it has one.

On EKS the agent on the node answers for the role; here the kubelet assumes it once, when the
container starts, and hands the credentials over in the environment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import NoCredentialsError

from local.iam.policy import trusts
from local.kubernetes.cloud import CloudError, client
from local.place import Place
from local.store import ResourceStore, folder

LOG = logging.getLogger(__name__)
ASSOCIATIONS = folder("aws:eks/podIdentityAssociation:PodIdentityAssociation")
DRIVER_NAMESPACE, DRIVER_ACCOUNT = "kube-system", "ebs-csi-controller-sa"
LOOK_SECONDS = 5.0
# Whom the driver acts as where there is no EKS cluster.
ITSELF = "the twin"
POD_IDENTITY = "pods.eks.amazonaws.com"
# The agent passes the pod's cluster, namespace and account on as tags, which is a right of its own.
POD_IDENTITY_ACTIONS = ("sts:AssumeRole", "sts:TagSession")


def pod_credentials(
    place: Place, cluster: str, namespace: str, service_account: str
) -> dict[str, str]:
    """Return the credentials of a ServiceAccount's role; without one, none.

    A role that does not let Pod Identity in, or is not there, gives none either: as on EKS, the
    pod's calls fail.
    """
    role = _role(place, cluster, namespace, service_account)
    if role:
        return _session(place, role, cluster, namespace, service_account)
    LOG.info("%s/%s has no Pod Identity association.", namespace, service_account)
    return {}


class AsDriver:
    """EC2 as the EBS driver's controller meets it: under its own role, or without any.

    The twin runs the driver from the start and to the end. Where there is no EKS cluster, it is
    the twin's own hand: it deletes the volumes of one that is gone.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._looked_at, self._acts_as = float("-inf"), ITSELF
        self._client: Any = client("ec2", place)

    def __getattr__(self, call: str) -> Any:
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._look()
        if self._client is None:
            raise NoCredentialsError
        return getattr(self._client, call)

    def _look(self) -> None:
        try:
            clusters = client("eks", self._place).list_clusters()["clusters"]
        except CloudError:
            return
        cluster, role = self._role_in(clusters) if clusters else ("", ITSELF)
        if role == self._acts_as:
            return
        session = (
            _session(self._place, role, cluster, DRIVER_NAMESPACE, DRIVER_ACCOUNT)
            if role not in (ITSELF, "")
            else {}
        )
        # Without a session it is asked for again at the next look.
        self._acts_as = role if session or role == ITSELF else ""
        self._client = client("ec2", self._place, session) if self._acts_as else None

    def _role_in(self, clusters: Iterable[str]) -> tuple[str, str]:
        found = (
            (each, _role(self._place, each, DRIVER_NAMESPACE, DRIVER_ACCOUNT)) for each in clusters
        )
        return next(((each, role) for each, role in found if role), ("", ""))


def _session(
    place: Place, role: str, cluster: str, namespace: str, service_account: str
) -> dict[str, str]:
    """Return credentials of a role, or none where its trust policy does not give them."""
    try:
        found = client("iam", place).get_role(RoleName=role.rpartition("/")[2])["Role"]
        trust = found["AssumeRolePolicyDocument"]
        tags = {
            "eks-cluster-name": cluster,
            "kubernetes-namespace": namespace,
            "kubernetes-service-account": service_account,
        }
        if not trusts(trust, POD_IDENTITY, role, *POD_IDENTITY_ACTIONS, tags=tags):
            LOG.error("The role %s does not let %s assume and tag it.", role, POD_IDENTITY)
            return {}
        name = f"eks-{namespace}-{service_account}"[:64]
        issued = client("sts", place).assume_role(RoleArn=role, RoleSessionName=name)["Credentials"]
    except CloudError as error:
        LOG.warning("The role %s could not be assumed: %s", role, error)
        return {}
    return {
        "AWS_ACCESS_KEY_ID": issued["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": issued["SecretAccessKey"],
        "AWS_SESSION_TOKEN": issued["SessionToken"],
    }


def _role(place: Place, cluster: str, namespace: str, service_account: str) -> str | None:
    """Return the role of an association that `up` made, or None.

    moto's EKS knows no associations; the provider's store has them.
    """
    wanted = {"clusterName": cluster, "namespace": namespace, "serviceAccount": service_account}
    for kind, _, state in ResourceStore(place.path("store")).everything():
        if kind == ASSOCIATIONS and all(state.get(key) == text for key, text in wanted.items()):
            return str(state["roleArn"])
    return None
