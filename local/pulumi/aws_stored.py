"""Gives the AWS resource types that moto lacks an id and an ARN, made from the URN.

moto holds some types, drops settings of others and lacks the rest (research: moto-coverage); these
live in the store alone (local.store).
"""

from __future__ import annotations

from collections.abc import Mapping

from local.pulumi.aws_adapter import Adapter, Aws
from local.pulumi.provider import Resource, State
from local.values import Properties

# Types whose id is neither a name nor an ARN: the format the real provider documents for imports.
ID_FORMATS = {
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": (
        "{clusterName}#{principalArn}#{policyArn}"
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "a-{token}",
    "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy": "{queueUrl}",
    "aws:s3/bucketObjectv2:BucketObjectv2": "{bucket}/{key}",
    "aws:scheduler/scheduleGroup:ScheduleGroup": "{name}",
    "aws:dlm/lifecyclePolicy:LifecyclePolicy": "policy-{token}",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "vpce-{token}",
    "aws:ec2/vpcEndpointService:VpcEndpointService": "vpce-svc-{token}",
}
# Properties that name a resource, in the order in which they are tried.
NAME_PROPERTIES = ("name", "bucket", "functionName", "clusterName", "alarmName", "addonName")
# What makes a new resource of each type that only the store knows.
# Source: the resource schemas of terraform-provider-aws (ForceNew, RequiresReplace).
REPLACING: Mapping[str, frozenset[str]] = {
    "aws:bcmdata/export:Export": frozenset(),  # parts of `export` (local/refusals/changing.py)
    "aws:dlm/lifecyclePolicy:LifecyclePolicy": frozenset(),
    "aws:ec2/vpcEndpoint:VpcEndpoint": frozenset({"serviceName", "vpcEndpointType", "vpcId"}),
    "aws:ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation": frozenset(
        {"routeTableId", "vpcEndpointId"}
    ),
    "aws:ec2/vpcEndpointService:VpcEndpointService": frozenset(),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": frozenset(
        {"accessScope", "clusterName", "policyArn", "principalArn"}
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": frozenset(
        {"clusterName", "namespace", "serviceAccount"}
    ),
    "aws:glue/catalogDatabase:CatalogDatabase": frozenset({"catalogId", "name"}),
    "aws:route53/record:Record": frozenset({"name", "setIdentifier", "zoneId"}),
    "aws:route53/zone:Zone": frozenset({"delegationSetId", "name"}),
    "aws:s3/bucketObjectv2:BucketObjectv2": frozenset({"bucket", "key"}),
    "aws:scheduler/schedule:Schedule": frozenset({"groupName", "name"}),
    "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy": frozenset({"queueUrl"}),
}


def service_of(resource_type: str) -> str:
    """Return the service of a type token: aws:eks/addon:Addon -> eks."""
    return resource_type.split(":")[1].partition("/")[0]


class StoredAdapter(Adapter):
    """A type that moto lacks: it has an id, an ARN and what the program said."""

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        kind = resource.type.split("/")[-1].split(":")[0]
        name = next((str(inputs[key]) for key in NAME_PROPERTIES if inputs.get(key)), resource.name)
        values = {**inputs, "token": resource.token(17)}
        template = ID_FORMATS.get(resource.type)
        if template is not None:
            identity = template.format_map(values)
        else:
            identity = name if inputs.get("name") else f"{name}-{resource.token()}"
        service = service_of(resource.type)
        arn = aws.arn(service, f"{kind}/{identity.replace(':', '/')}")
        return State(identity, {"arn": arn})


STORED = StoredAdapter()
