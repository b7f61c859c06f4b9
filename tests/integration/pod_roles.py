"""Makes a role for the pods of a service account, as an association gives it, and takes it away."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from local.kubernetes.identity import POD_IDENTITY, POD_IDENTITY_ACTIONS
from local.store import ResourceStore
from local.twin import Twin

ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


@contextlib.contextmanager
def role_for(
    twin: Twin, cluster: str, namespace: str, service_account: str, *actions: str
) -> Iterator[None]:
    """Let a service account's pods do some actions for as long as the block lasts."""
    iam, store = twin.aws("iam"), ResourceStore(twin.place.path("store"))
    name = f"{cluster}-{service_account}"
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": POD_IDENTITY},
        "Action": list(POD_IDENTITY_ACTIONS),
    }
    made = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]})
    )
    rights = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=policy)
    association = {
        "clusterName": cluster,
        "namespace": namespace,
        "serviceAccount": service_account,
        "roleArn": made["Role"]["Arn"],
    }
    store.put(ASSOCIATION, name, association)
    try:
        yield
    finally:
        store.remove(ASSOCIATION, name)
        iam.delete_role_policy(RoleName=name, PolicyName="rights")
        iam.delete_role(RoleName=name)
