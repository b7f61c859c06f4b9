"""Roles, policies and instance profiles; the twin's STS and authenticator read them in moto."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    TagCalls,
    adapts,
    first,
    has_changed,
    missing,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.documents import as_list, text
from local.values import Properties

AWS_MANAGED = "arn:aws:iam::aws:policy/"


def _attach(aws: Aws, role: str, policy: str) -> None:
    """Attach a policy; moto lacks some of AWS's own, and nothing in the twin evaluates those."""
    try:
        aws.client("iam").attach_role_policy(RoleName=role, PolicyArn=policy)
    except Exception as error:
        if not (policy.startswith(AWS_MANAGED) and missing(error)):
            raise


def _detach(aws: Aws, role: str, policy: str) -> None:
    try:
        aws.client("iam").detach_role_policy(RoleName=role, PolicyArn=policy)
    except Exception as error:
        if not missing(error):
            raise


@adapts("iam/role:Role")
class RoleAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"path"})
    lookup = CallById("iam", "get_role", "RoleName")
    tagging = TagCalls("iam", "tag_role", "untag_role", "RoleName")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name, trust = inputs["name"], text(inputs["assumeRolePolicy"])
        made = self.make(aws, inputs, AssumeRolePolicyDocument=trust)["Role"]
        self._policies(aws, name, {}, inputs)
        return State(name, {"arn": made["Arn"], "uniqueId": made["RoleId"]})

    @staticmethod
    def _policies(aws: Aws, name: str, old: Properties, new: Properties) -> None:
        """Bring inline and attached policies that the role itself lists to the new inputs."""
        iam = aws.client("iam")
        before = {p["name"]: p["policy"] for p in as_list(old.get("inlinePolicies")) if "name" in p}
        after = {p["name"]: p["policy"] for p in as_list(new.get("inlinePolicies")) if "name" in p}
        for gone in set(before) - set(after):
            iam.delete_role_policy(RoleName=name, PolicyName=gone)
        for policy, document in after.items():
            if before.get(policy) != document:
                iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=text(document))
        had, has = (set(as_list(side.get("managedPolicyArns"))) for side in (old, new))
        for policy in had - has:
            _detach(aws, name, policy)
        for policy in has - had:
            _attach(aws, name, policy)

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        iam, name = aws.client("iam"), existing.id
        if has_changed(existing, inputs, "assumeRolePolicy"):
            iam.update_assume_role_policy(
                RoleName=name, PolicyDocument=text(inputs["assumeRolePolicy"])
            )
        if has_changed(existing, inputs, "description", "maxSessionDuration"):
            iam.update_role(
                RoleName=name,
                Description=inputs.get("description") or "",
                MaxSessionDuration=int(inputs.get("maxSessionDuration") or 3600),
            )
        self._policies(aws, name, existing.inputs, inputs)
        self.tagging.bring(aws, name, existing, inputs)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        self._policies(aws, existing.id, existing.inputs, {})
        aws.client("iam").delete_role(RoleName=existing.id)


@adapts("iam/rolePolicyAttachment:RolePolicyAttachment")
class RolePolicyAttachmentAdapter(Adapter):
    replaces = frozenset({"role", "policyArn"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        _attach(aws, inputs["role"], inputs["policyArn"])
        return State(f"{inputs['role']}/{inputs['policyArn']}", {})

    def delete(self, aws: Aws, existing: Existing) -> None:
        _detach(aws, existing.inputs["role"], existing.inputs["policyArn"])


@adapts("iam/rolePolicy:RolePolicy")
class RolePolicyAdapter(PutAdapter):
    name_property = "name"
    identity = "{role}:{name}"
    replaces = frozenset({"role"})

    def put(self, aws: Aws, inputs: Properties) -> None:
        self.make(aws, inputs, PolicyDocument=text(inputs["policy"]))

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("iam").delete_role_policy(
            RoleName=existing.inputs["role"], PolicyName=existing.outputs["name"]
        )


@adapts("iam/policy:Policy")
class PolicyAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"path", "description"})
    deletion = CallById("iam", "delete_policy", "PolicyArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        made = self.make(aws, inputs, PolicyDocument=text(inputs["policy"]))["Policy"]
        return State(made["Arn"], {"arn": made["Arn"], "policyId": made["PolicyId"]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        iam = aws.client("iam")
        if has_changed(existing, inputs, "policy"):
            versions = iam.list_policy_versions(PolicyArn=existing.id)["Versions"]
            iam.create_policy_version(
                PolicyArn=existing.id, PolicyDocument=text(inputs["policy"]), SetAsDefault=True
            )
            # A policy holds five versions; only the one in force is of use.
            for version in versions:
                iam.delete_policy_version(PolicyArn=existing.id, VersionId=version["VersionId"])
        return {}


@adapts("iam/instanceProfile:InstanceProfile")
class InstanceProfileAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"path"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name, made = inputs["name"], self.make(aws, inputs)["InstanceProfile"]
        if inputs.get("role"):
            self.make(aws, inputs, 1)
        return State(name, {"arn": made["Arn"], "uniqueId": made["InstanceProfileId"]})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        iam = aws.client("iam")
        if has_changed(existing, inputs, "role"):
            self._clear(aws, existing.id)
            if inputs.get("role"):
                iam.add_role_to_instance_profile(
                    InstanceProfileName=existing.id, RoleName=inputs["role"]
                )
        return {}

    @staticmethod
    def _clear(aws: Aws, name: str) -> None:
        iam = aws.client("iam")
        profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        role = first(profile.get("Roles", []))
        if role:
            iam.remove_role_from_instance_profile(
                InstanceProfileName=name, RoleName=role["RoleName"]
            )

    def delete(self, aws: Aws, existing: Existing) -> None:
        self._clear(aws, existing.id)
        aws.client("iam").delete_instance_profile(InstanceProfileName=existing.id)
