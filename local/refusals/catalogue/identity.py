"""IAM, keys and secrets."""

from __future__ import annotations

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs
from local.refusals.model import input_shape
from local.shapes import coerce

_CONSTRAINTS = input_shape("kms", "CreateGrant").members["Constraints"]


def _constraints(inputs: Inputs) -> Parameters:
    """Return a grant's constraints, of which the provider takes a list of one."""
    return {key: value for each in inputs.get("constraints") or () for key, value in each.items()}


enter(
    "iam/instanceProfile:InstanceProfile",
    call("iam", "CreateInstanceProfile", names={"name": "InstanceProfileName"}),
    call(
        "iam",
        "AddRoleToInstanceProfile",
        names={"name": "InstanceProfileName", "role": "RoleName"},
        where=frozenset({"role"}),
    ),
)
enter(
    "iam/policy:Policy",
    call("iam", "CreatePolicy", names={"name": "PolicyName", "policy": "PolicyDocument"}),
)
enter(
    "iam/role:Role",
    call(
        "iam",
        "CreateRole",
        names={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"},
    ),
)
enter(
    "iam/rolePolicy:RolePolicy",
    call(
        "iam",
        "PutRolePolicy",
        names={"role": "RoleName", "policy": "PolicyDocument", "name": "PolicyName"},
        # Without a name the provider makes one: terraform- and 26 characters.
        build=lambda i: {"PolicyName": i.get("name") or "terraform-20260101000000000000000001"},
    ),
)
enter(
    "iam/rolePolicyAttachment:RolePolicyAttachment",
    call("iam", "AttachRolePolicy", names={"role": "RoleName"}),
)
enter(
    "kms/alias:Alias",
    call("kms", "CreateAlias", names={"name": "AliasName", "targetKeyId": "TargetKeyId"}),
)
enter(
    "kms/grant:Grant",
    call(
        "kms",
        "CreateGrant",
        "constraints",
        build=lambda i: {"Constraints": coerce(_CONSTRAINTS, _constraints(i))},
    ),
)
enter(
    "kms/key:Key",
    call("kms", "CreateKey"),
    deletionWindowInDays="of ScheduleKeyDeletion: see limits",
    enableKeyRotation="EnableKeyRotation, a boolean",
)
enter(
    "secretsmanager/secret:Secret",
    call("secretsmanager", "CreateSecret"),
    recoveryWindowInDays="of DeleteSecret: see limits",
)
enter("secretsmanager/secretVersion:SecretVersion", call("secretsmanager", "PutSecretValue"))
