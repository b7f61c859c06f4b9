"""IAM, keys and secrets."""

from __future__ import annotations

from local.pulumi.aws_adapter import coerced
from local.refusals.calls import Parameters, call, made
from local.refusals.catalogue.parameters import Inputs
from local.refusals.model import input_shape

_CONSTRAINTS = input_shape("kms", "CreateGrant").members["Constraints"]


def _constraints(inputs: Inputs) -> Parameters:
    """Return a grant's constraints, of which the provider takes a list of one."""
    return {key: value for each in inputs.get("constraints") or () for key, value in each.items()}


made(
    "iam/instanceProfile:InstanceProfile",
    call("iam", "CreateInstanceProfile", names={"name": "InstanceProfileName"}),
    call(
        "iam",
        "AddRoleToInstanceProfile",
        names={"name": "InstanceProfileName", "role": "RoleName"},
        where=frozenset({"role"}),
    ),
)
made(
    "iam/policy:Policy",
    call("iam", "CreatePolicy", names={"name": "PolicyName", "policy": "PolicyDocument"}),
)
made(
    "iam/role:Role",
    call(
        "iam",
        "CreateRole",
        names={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"},
    ),
)
made(
    "iam/rolePolicy:RolePolicy",
    call(
        "iam",
        "PutRolePolicy",
        names={"role": "RoleName", "policy": "PolicyDocument", "name": "PolicyName"},
        # Without a name the provider makes one: terraform- and 26 characters.
        build=lambda i: {"PolicyName": i.get("name") or "terraform-20260101000000000000000001"},
    ),
)
made(
    "iam/rolePolicyAttachment:RolePolicyAttachment",
    call("iam", "AttachRolePolicy", names={"role": "RoleName"}),
)
made(
    "kms/alias:Alias",
    call("kms", "CreateAlias", names={"name": "AliasName", "targetKeyId": "TargetKeyId"}),
)
made(
    "kms/grant:Grant",
    call(
        "kms",
        "CreateGrant",
        "constraints",
        build=lambda i: {"Constraints": coerced(_CONSTRAINTS, _constraints(i))},
    ),
)
made(
    "kms/key:Key",
    call("kms", "CreateKey"),
    deletionWindowInDays="of ScheduleKeyDeletion: see limits",
    enableKeyRotation="EnableKeyRotation, a boolean",
)
made(
    "secretsmanager/secret:Secret",
    call("secretsmanager", "CreateSecret"),
    recoveryWindowInDays="of DeleteSecret: see limits",
)
made("secretsmanager/secretVersion:SecretVersion", call("secretsmanager", "PutSecretValue"))
