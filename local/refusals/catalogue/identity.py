"""IAM, keys and secrets."""

from __future__ import annotations

from local.refusals.calls import call, made

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
made("kms/grant:Grant", call("kms", "CreateGrant"))
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
