"""Recorded AWS resources as a Terraform plan, the form Checkov reads them in.

Pulumi's AWS provider is Terraform's, bridged: `aws:sqs/queue:Queue` is aws_sqs_queue, camelCase is
snake_case, and a block that may stand once is an object in place of a list of one.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.unit.infra.recording import Recorded, Resource

# Terraform's names, which follow no rule; `aws_` goes before each.
TYPES: Mapping[str, str] = {
    "autoscaling/group:Group": "autoscaling_group",
    "autoscaling/lifecycleHook:LifecycleHook": "autoscaling_lifecycle_hook",
    "bcmdata/export:Export": "bcmdataexports_export",
    "cloudwatch/dashboard:Dashboard": "cloudwatch_dashboard",
    "cloudwatch/eventRule:EventRule": "cloudwatch_event_rule",
    "cloudwatch/eventTarget:EventTarget": "cloudwatch_event_target",
    "cloudwatch/logGroup:LogGroup": "cloudwatch_log_group",
    "cloudwatch/logMetricFilter:LogMetricFilter": "cloudwatch_log_metric_filter",
    "cloudwatch/metricAlarm:MetricAlarm": "cloudwatch_metric_alarm",
    "dlm/lifecyclePolicy:LifecyclePolicy": "dlm_lifecycle_policy",
    "dynamodb/table:Table": "dynamodb_table",
    "dynamodb/tableItem:TableItem": "dynamodb_table_item",
    "ec2/defaultSecurityGroup:DefaultSecurityGroup": "default_security_group",
    "ec2/eip:Eip": "eip",
    "ec2/internetGateway:InternetGateway": "internet_gateway",
    "ec2/launchTemplate:LaunchTemplate": "launch_template",
    "ec2/natGateway:NatGateway": "nat_gateway",
    "ec2/route:Route": "route",
    "ec2/routeTable:RouteTable": "route_table",
    "ec2/routeTableAssociation:RouteTableAssociation": "route_table_association",
    "ec2/securityGroup:SecurityGroup": "security_group",
    "ec2/subnet:Subnet": "subnet",
    "ec2/vpc:Vpc": "vpc",
    "ec2/vpcEndpoint:VpcEndpoint": "vpc_endpoint",
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation": (
        "vpc_endpoint_route_table_association"
    ),
    "ec2/vpcEndpointService:VpcEndpointService": "vpc_endpoint_service",
    "eks/accessEntry:AccessEntry": "eks_access_entry",
    "eks/addon:Addon": "eks_addon",
    "eks/cluster:Cluster": "eks_cluster",
    "eks/nodeGroup:NodeGroup": "eks_node_group",
    "eks/podIdentityAssociation:PodIdentityAssociation": "eks_pod_identity_association",
    "emrserverless/application:Application": "emrserverless_application",
    "glue/catalogDatabase:CatalogDatabase": "glue_catalog_database",
    "iam/instanceProfile:InstanceProfile": "iam_instance_profile",
    "iam/role:Role": "iam_role",
    "iam/rolePolicy:RolePolicy": "iam_role_policy",
    "iam/rolePolicyAttachment:RolePolicyAttachment": "iam_role_policy_attachment",
    "kms/alias:Alias": "kms_alias",
    "kms/grant:Grant": "kms_grant",
    "kms/key:Key": "kms_key",
    "lambda/eventSourceMapping:EventSourceMapping": "lambda_event_source_mapping",
    "lambda/function:Function": "lambda_function",
    "lambda/functionUrl:FunctionUrl": "lambda_function_url",
    "lambda/permission:Permission": "lambda_permission",
    "lb/listener:Listener": "lb_listener",
    "lb/loadBalancer:LoadBalancer": "lb",
    "lb/targetGroup:TargetGroup": "lb_target_group",
    "route53/record:Record": "route53_record",
    "route53/zone:Zone": "route53_zone",
    "s3/bucket:Bucket": "s3_bucket",
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": (
        "s3_bucket_lifecycle_configuration"
    ),
    "s3/bucketObjectv2:BucketObjectv2": "s3_object",
    "s3/bucketPolicy:BucketPolicy": "s3_bucket_policy",
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock": "s3_bucket_public_access_block",
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
        "s3_bucket_server_side_encryption_configuration"
    ),
    "s3/bucketVersioning:BucketVersioning": "s3_bucket_versioning",
    "scheduler/schedule:Schedule": "scheduler_schedule",
    "secretsmanager/secret:Secret": "secretsmanager_secret",
    "secretsmanager/secretVersion:SecretVersion": "secretsmanager_secret_version",
    "sns/topic:Topic": "sns_topic",
    "sns/topicPolicy:TopicPolicy": "sns_topic_policy",
    "sns/topicSubscription:TopicSubscription": "sns_topic_subscription",
    "sqs/queue:Queue": "sqs_queue",
    "sqs/queuePolicy:QueuePolicy": "sqs_queue_policy",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": "vpc_security_group_egress_rule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": "vpc_security_group_ingress_rule",
}
# Attributes that are mappings in Terraform, too: their keys are the user's.
MAPPINGS = {"tags", "variables", "targetTags", "securityGroupNames"}
# Where the bridge gives a list a plural of its own.
SINGULAR: Mapping[str, str] = {
    "blockDeviceMappings": "block_device_mappings",
    "defaultActions": "default_action",
    "encryptionConfigs": "encryption_config",
    "globalSecondaryIndexes": "global_secondary_index",
    "rules": "rule",
    "schedules": "schedule",
    "tagSpecifications": "tag_specifications",
}


def plan(layers: Mapping[str, Recorded]) -> dict[str, Any]:
    """Return the plan that makes every AWS resource of these layers."""
    resources = [
        (layer, resource)
        for layer, recorded in layers.items()
        for resource in recorded.resources
        if resource.type.startswith("aws:")
    ]
    addresses = {resource.mock_urn: address(layer, resource) for layer, resource in resources}
    planned = [_planned_resource(addresses[r.mock_urn], r) for _, r in resources]
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": planned}},
        "resource_changes": [
            {**each, "change": {"actions": ["create"], "before": None, "after": each["values"]}}
            for each in planned
        ],
        "configuration": {
            "root_module": {"resources": [_configuration(r, addresses) for _, r in resources]}
        },
    }


def address(layer: str, resource: Resource) -> str:
    """Return a resource's Terraform address, which says its layer and Pulumi's name."""
    return f"{terraform_type(resource)}.{layer}-{resource.name}".replace(" ", "-")


def terraform_type(resource: Resource) -> str:
    _, _, type_ = resource.type.partition(":")
    if type_ not in TYPES:
        raise KeyError(f"{type_} is not in TYPES; add the name Terraform has for it.")
    return f"aws_{TYPES[type_]}"


def _planned_resource(at: str, resource: Resource) -> dict[str, Any]:
    type_, _, name = at.partition(".")
    return {
        "address": at,
        "mode": "managed",
        "type": type_,
        "name": name,
        "provider_name": "registry.terraform.io/hashicorp/aws",
        "values": terraform(resource.inputs),
    }


def _configuration(resource: Resource, addresses: Mapping[str, str]) -> dict[str, Any]:
    at = addresses[resource.mock_urn]
    type_, _, name = at.partition(".")
    expressions = {}
    for key, urns in resource.references.items():
        found = sorted(addresses[urn] for urn in urns if urn in addresses)
        if found:
            # A nested value's reference stands at its attribute.
            expressions[snake(key)] = {"references": [r for a in found for r in (f"{a}.id", a)]}
    return {
        "address": at,
        "mode": "managed",
        "type": type_,
        "name": name,
        "expressions": expressions,
    }


def terraform(value: Any) -> Any:
    """Return inputs as Terraform writes them: snake_case, and every block a list."""
    if isinstance(value, list):
        return [terraform(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        snake(key): _attribute(key, each) for key, each in value.items() if not key.startswith("__")
    }


def _attribute(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value) if key in MAPPINGS else [terraform(value)]
    return terraform(value)


def snake(name: str) -> str:
    """Return Terraform's name of an input.

    >>> snake("visibilityTimeoutSeconds"), snake("defaultActions"), snake("cidrIpv4")
    ('visibility_timeout_seconds', 'default_action', 'cidr_ipv4')
    """
    if name in SINGULAR:
        return SINGULAR[name]
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
