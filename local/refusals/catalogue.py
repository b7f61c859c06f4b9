"""The calls behind every resource type in use, service by service; `calls` says how to read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from local.pulumi.aws_adapter import coerced
from local.refusals.calls import TYPES, Parameters, call, made
from local.refusals.model import input_shape

Inputs = Mapping[str, Any]


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _key_schema(inputs: Inputs) -> list[Parameters]:
    if inputs.get("keySchemas"):
        return [
            {"AttributeName": key["attributeName"], "KeyType": key["keyType"]}
            for key in inputs["keySchemas"]
        ]
    keys = (("hashKey", "HASH"), ("rangeKey", "RANGE"))
    return [{"AttributeName": inputs[k], "KeyType": kind} for k, kind in keys if inputs.get(k)]


def _table(inputs: Inputs) -> Parameters:
    indexes = [
        {
            "IndexName": index["name"],
            "KeySchema": _key_schema(index),
            "Projection": {"ProjectionType": index.get("projectionType", "ALL")},
        }
        for index in inputs.get("globalSecondaryIndexes") or ()
    ]
    return {
        "KeySchema": _key_schema(inputs),
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]}
            for each in inputs.get("attributes") or ()
        ],
        "GlobalSecondaryIndexes": indexes or None,
    }


def _item(inputs: Inputs) -> Parameters:
    return {"Item": json.loads(inputs["item"])}


def _launched(inputs: Inputs) -> list[Parameters]:
    return [
        {
            "ResourceType": each["resourceType"],
            "Tags": [{"Key": k, "Value": v} for k, v in (each.get("tags") or {}).items()],
        }
        for each in inputs.get("tagSpecifications") or ()
    ]


_TEMPLATE = (
    "blockDeviceMappings",
    "ebsOptimized",
    "iamInstanceProfile",
    "imageId",
    "instanceType",
    "metadataOptions",
    "tagSpecifications",
    "userData",
    "vpcSecurityGroupIds",
)


def _template(inputs: Inputs) -> Parameters:

    shape = input_shape("ec2", "CreateLaunchTemplate").members["LaunchTemplateData"]
    given = {key: inputs[key] for key in _TEMPLATE if key in inputs and key != "tagSpecifications"}
    if "vpcSecurityGroupIds" in given:
        given["securityGroupIds"] = given.pop("vpcSecurityGroupIds")
    return {"LaunchTemplateData": {**coerced(shape, given), "TagSpecifications": _launched(inputs)}}


def _rule(inputs: Inputs) -> Parameters:
    description = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: Parameters = {"IpProtocol": inputs["ipProtocol"]}
    for key, member in (("fromPort", "FromPort"), ("toPort", "ToPort")):
        if inputs.get(key) is not None:
            permission[member] = int(inputs[key])
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **description}]
    if inputs.get("referencedSecurityGroupId"):
        group = {"GroupId": inputs["referencedSecurityGroupId"], **description}
        permission["UserIdGroupPairs"] = [group]
    return {"GroupId": inputs["securityGroupId"], "IpPermissions": [permission]}


_RULE = (
    "cidrIpv4",
    "description",
    "fromPort",
    "ipProtocol",
    "referencedSecurityGroupId",
    "securityGroupId",
    "toPort",
)


def _attributes(inputs: Inputs, names: Mapping[str, str]) -> dict[str, str]:
    return {
        member: str(inputs[key]).lower() if isinstance(inputs[key], bool) else str(inputs[key])
        for key, member in names.items()
        if inputs.get(key) is not None
    }


_QUEUE = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "redrivePolicy": "RedrivePolicy",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "delaySeconds": "DelaySeconds",
    "fifoQueue": "FifoQueue",
    "maxMessageSize": "MaximumMessageSize",
}
_TOPIC = {"displayName": "DisplayName", "kmsMasterKeyId": "KmsMasterKeyId"}
_BALANCER = {
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
}
_GROUP = {
    "connectionTermination": "deregistration_delay.connection_termination.enabled",
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "loadBalancingCrossZoneEnabled": "load_balancing.cross_zone.enabled",
    "preserveClientIp": "preserve_client_ip.enabled",
}


def _pairs(inputs: Inputs, names: Mapping[str, str]) -> list[Parameters]:
    return [{"Key": key, "Value": value} for key, value in _attributes(inputs, names).items()]


def _health_check(inputs: Inputs) -> Parameters:
    check = inputs.get("healthCheck") or {}
    names = {
        "timeout": "HealthCheckTimeoutSeconds",
        "interval": "HealthCheckIntervalSeconds",
        "port": "HealthCheckPort",
        "protocol": "HealthCheckProtocol",
        "healthyThreshold": "HealthyThresholdCount",
        "unhealthyThreshold": "UnhealthyThresholdCount",
    }
    return {member: check[key] for key, member in names.items() if check.get(key) is not None}


def _dimensions(given: Any) -> list[Parameters]:
    return [{"Name": name, "Value": value} for name, value in (given or {}).items()]


def _series(query: Inputs) -> Parameters:
    metric = query.get("metric")
    plain = {"id": "Id", "expression": "Expression", "label": "Label", "returnData": "ReturnData"}
    found = {member: query[key] for key, member in plain.items() if query.get(key) is not None}
    if metric:
        found["MetricStat"] = {
            "Metric": {
                "Namespace": metric.get("namespace"),
                "MetricName": metric["metricName"],
                "Dimensions": _dimensions(metric.get("dimensions")),
            },
            "Period": metric["period"],
            "Stat": metric["stat"],
        }
    return found


def _alarm(inputs: Inputs) -> Parameters:
    return {
        "Metrics": [_series(query) for query in inputs.get("metricQueries") or ()] or None,
        "Dimensions": _dimensions(inputs.get("dimensions")) or None,
    }


def _group_tag(inputs: Inputs) -> Parameters:
    tag, group = inputs["tag"], inputs["autoscalingGroupName"]
    return {
        "Tags": [
            {
                "ResourceId": group,
                "ResourceType": "auto-scaling-group",
                "Key": tag["key"],
                "Value": tag["value"],
                "PropagateAtLaunch": tag["propagateAtLaunch"],
            }
        ]
    }


def _export(inputs: Inputs) -> Parameters:
    export = inputs["export"]
    query = export["dataQueries"][0]
    destination = export["destinationConfigurations"][0]["s3Destinations"][0]
    output = destination["s3OutputConfigurations"][0]
    return {
        "Export": {
            "Name": export["name"],
            "DataQuery": {
                "QueryStatement": query["queryStatement"],
                "TableConfigurations": query.get("tableConfigurations") or {},
            },
            "DestinationConfigurations": {
                "S3Destination": {
                    "S3Bucket": destination["s3Bucket"],
                    "S3Prefix": destination["s3Prefix"],
                    "S3Region": destination["s3Region"],
                    "S3OutputConfigurations": {
                        "OutputType": output["outputType"],
                        "Format": output["format"],
                        "Compression": output["compression"],
                        "Overwrite": output["overwrite"],
                    },
                }
            },
            "RefreshCadence": {"Frequency": export["refreshCadences"][0]["frequency"]},
        }
    }


def _dlm(inputs: Inputs) -> Parameters:

    details = dict(inputs["policyDetails"])
    targets = [{"Key": k, "Value": v} for k, v in (details.pop("targetTags", None) or {}).items()]
    schedules = [
        {
            **schedule,
            "createRule": {
                **(schedule.get("createRule") or {}),
                "times": _listed((schedule.get("createRule") or {}).get("times") or []),
            },
        }
        for schedule in details.pop("schedules", ())
    ]
    shape = input_shape("dlm", "CreateLifecyclePolicy").members["PolicyDetails"]
    given = coerced(shape, {**details, "schedules": schedules})
    return {"PolicyDetails": {**given, "TargetTags": targets}}


def _lifecycle(inputs: Inputs) -> Parameters:
    names = {"id": "ID", "status": "Status"}
    rules = []
    for rule in inputs["rules"]:
        each: Parameters = {member: rule[key] for key, member in names.items() if key in rule}
        each["Filter"] = {"Prefix": (rule.get("filter") or {}).get("prefix") or ""}
        days = (rule.get("expiration") or {}).get("days")
        if days is not None:
            each["Expiration"] = {"Days": days}
        rules.append(each)
    return {"LifecycleConfiguration": {"Rules": rules}}


def _zone(inputs: Inputs) -> Parameters:
    vpcs = inputs.get("vpcs") or ()
    return {
        "CallerReference": "terraform-20260101000000000000000001",
        "HostedZoneConfig": {"Comment": inputs.get("comment") or ""},
        "VPC": {"VPCId": vpcs[0]["vpcId"]} if vpcs else None,
    }


def _record(inputs: Inputs) -> Parameters:
    record: Parameters = {"Name": inputs["name"], "Type": inputs["type"]}
    if inputs.get("ttl") is not None:
        record["TTL"] = inputs["ttl"]
    return {
        "HostedZoneId": inputs["zoneId"],
        "ChangeBatch": {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]},
    }


def _target(inputs: Inputs) -> Parameters:
    target: Parameters = {"Id": inputs.get("targetId") or "terraform", "Arn": inputs["arn"]}
    for key, member in (("roleArn", "RoleArn"), ("input", "Input")):
        if inputs.get(key):
            target[member] = inputs[key]
    retry = inputs.get("retryPolicy") or {}
    if retry:
        target["RetryPolicy"] = {
            "MaximumRetryAttempts": retry.get("maximumRetryAttempts"),
            "MaximumEventAgeInSeconds": retry.get("maximumEventAgeInSeconds"),
        }
    if inputs.get("deadLetterConfig"):
        target["DeadLetterConfig"] = {"Arn": inputs["deadLetterConfig"]["arn"]}
    return {"Rule": inputs["rule"], "Targets": [target]}


made(
    "autoscaling/group:Group",
    call(
        "autoscaling",
        "CreateAutoScalingGroup",
        "vpcZoneIdentifiers",
        names={"name": "AutoScalingGroupName"},
        build=lambda i: {"VPCZoneIdentifier": ",".join(i.get("vpcZoneIdentifiers") or ())},
    ),
    call(
        "autoscaling",
        "SuspendProcesses",
        names={"name": "AutoScalingGroupName", "suspendedProcesses": "ScalingProcesses"},
        where=frozenset({"suspendedProcesses"}),
    ),
)
made(
    "autoscaling/lifecycleHook:LifecycleHook",
    call("autoscaling", "PutLifecycleHook", names={"name": "LifecycleHookName"}),
)
made(
    "autoscaling/tag:Tag",
    call("autoscaling", "CreateOrUpdateTags", "tag", "autoscalingGroupName", build=_group_tag),
)
made("bcmdata/export:Export", call("bcm-data-exports", "CreateExport", "export", build=_export))
made("cloudwatch/dashboard:Dashboard", call("cloudwatch", "PutDashboard"))
made("cloudwatch/eventRule:EventRule", call("events", "PutRule"))
made(
    "cloudwatch/eventTarget:EventTarget",
    call(
        "events",
        "PutTargets",
        "arn",
        "deadLetterConfig",
        "input",
        "retryPolicy",
        "roleArn",
        "rule",
        "targetId",
        build=_target,
    ),
)
made(
    "cloudwatch/logGroup:LogGroup",
    call("logs", "CreateLogGroup", names={"name": "logGroupName"}),
    call(
        "logs",
        "PutRetentionPolicy",
        names={"name": "logGroupName"},
        where=frozenset({"retentionInDays"}),
    ),
)
made(
    "cloudwatch/metricAlarm:MetricAlarm",
    call(
        "cloudwatch",
        "PutMetricAlarm",
        "metricQueries",
        "dimensions",
        names={"name": "AlarmName"},
        build=_alarm,
    ),
)
made(
    "dlm/lifecyclePolicy:LifecyclePolicy",
    call("dlm", "CreateLifecyclePolicy", "policyDetails", build=_dlm),
)
made(
    "dynamodb/table:Table",
    call(
        "dynamodb",
        "CreateTable",
        "attributes",
        "globalSecondaryIndexes",
        "hashKey",
        "rangeKey",
        names={"name": "TableName"},
        build=_table,
    ),
    pointInTimeRecovery="a call of its own with two values, both ours",
    ttl="a call of its own; the attribute's name has no limit of its own",
)
made(
    "dynamodb/tableItem:TableItem",
    call("dynamodb", "PutItem", "item", build=_item),
    hashKey="names the key of the item for the provider",
    rangeKey="as hashKey",
)
made(
    "ec2/defaultSecurityGroup:DefaultSecurityGroup",
    call("ec2", "CreateTags", build=lambda _: {"Resources": ["sg-0123456789abcdef0"]}),
    vpcId="adopts the group that the VPC has",
)
made("ec2/eip:Eip", call("ec2", "AllocateAddress"))
made(
    "ec2/internetGateway:InternetGateway",
    call("ec2", "CreateInternetGateway"),
    vpcId="attached by a call of its own, which takes ids alone",
)
made(
    "ec2/launchTemplate:LaunchTemplate",
    call(
        "ec2",
        "CreateLaunchTemplate",
        *_TEMPLATE,
        names={"name": "LaunchTemplateName"},
        build=_template,
    ),
    updateDefaultVersion="the provider's own: which version becomes the default",
)
made("ec2/natGateway:NatGateway", call("ec2", "CreateNatGateway"))
made("ec2/route:Route", call("ec2", "CreateRoute"))
made("ec2/routeTable:RouteTable", call("ec2", "CreateRouteTable"))
made("ec2/routeTableAssociation:RouteTableAssociation", call("ec2", "AssociateRouteTable"))
made(
    "ec2/securityGroup:SecurityGroup",
    call("ec2", "CreateSecurityGroup", names={"name": "GroupName"}),
)
made("ec2/subnet:Subnet", call("ec2", "CreateSubnet"))
made(
    "ec2/vpc:Vpc",
    call("ec2", "CreateVpc"),
    enableDnsHostnames="ModifyVpcAttribute, a boolean",
    enableDnsSupport="ModifyVpcAttribute, a boolean",
)
made("ec2/vpcEndpoint:VpcEndpoint", call("ec2", "CreateVpcEndpoint"))
made(
    "ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation",
    call(
        "ec2",
        "ModifyVpcEndpoint",
        "routeTableId",
        build=lambda i: {"AddRouteTableIds": [i["routeTableId"]]},
    ),
)
made(
    "ec2/vpcEndpointService:VpcEndpointService",
    call("ec2", "CreateVpcEndpointServiceConfiguration"),
    allowedPrincipals="ModifyVpcEndpointServicePermissions, ARNs that the spec has checked",
)
made("eks/accessEntry:AccessEntry", call("eks", "CreateAccessEntry"))
made("eks/accessPolicyAssociation:AccessPolicyAssociation", call("eks", "AssociateAccessPolicy"))
made(
    "eks/addon:Addon",
    call("eks", "CreateAddon", names={"resolveConflictsOnCreate": "resolveConflicts"}),
    resolveConflictsOnUpdate="of UpdateAddon, the same two words",
)
made(
    "eks/cluster:Cluster",
    call(
        "eks",
        "CreateCluster",
        "encryptionConfig",
        "enabledClusterLogTypes",
        "vpcConfig",
        build=lambda i: {
            "resourcesVpcConfig": dict(i["vpcConfig"]),
            "encryptionConfig": [i["encryptionConfig"]] if i.get("encryptionConfig") else None,
            "logging": {
                "clusterLogging": [
                    {"types": list(i.get("enabledClusterLogTypes") or ()), "enabled": True}
                ]
            },
        },
    ),
)
made(
    "eks/nodeGroup:NodeGroup",
    call(
        "eks",
        "CreateNodegroup",
        names={"nodeGroupName": "nodegroupName", "nodeRoleArn": "nodeRole", "subnetIds": "subnets"},
    ),
)
made(
    "eks/podIdentityAssociation:PodIdentityAssociation", call("eks", "CreatePodIdentityAssociation")
)
made(
    "emrserverless/application:Application",
    call(
        "emr-serverless",
        "CreateApplication",
        build=lambda _: {"clientToken": "terraform-20260101000000000000000001"},
    ),
)
made(
    "glue/catalogDatabase:CatalogDatabase",
    call("glue", "CreateDatabase", "name", build=lambda i: {"DatabaseInput": {"Name": i["name"]}}),
)
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
made("lambda/eventSourceMapping:EventSourceMapping", call("lambda", "CreateEventSourceMapping"))
made(
    "lambda/function:Function",
    call(
        "lambda",
        "CreateFunction",
        "code",
        names={"name": "FunctionName"},
        # The zip itself is measured by limits.
        build=lambda _: {"Code": {}},
    ),
    call(
        "lambda",
        "PutFunctionConcurrency",
        names={"name": "FunctionName"},
        where=frozenset({"reservedConcurrentExecutions"}),
    ),
    sourceCodeHash="the provider's own: what it compares the zip by",
)
made(
    "lambda/functionUrl:FunctionUrl",
    call("lambda", "CreateFunctionUrlConfig", names={"authorizationType": "AuthType"}),
)
made(
    "lambda/permission:Permission",
    call(
        "lambda",
        "AddPermission",
        names={"function": "FunctionName"},
        build=lambda i: {
            "StatementId": i.get("statementId") or "terraform-20260101000000000000000001"
        },
    ),
)
made(
    "lb/listener:Listener",
    call("elbv2", "CreateListener"),
    tcpIdleTimeoutSeconds="a listener's attribute: see limits",
)
made(
    "lb/loadBalancer:LoadBalancer",
    call(
        "elbv2",
        "CreateLoadBalancer",
        "internal",
        names={"loadBalancerType": "Type"},
        build=lambda i: {"Scheme": "internal" if i.get("internal") else "internet-facing"},
    ),
    call(
        "elbv2",
        "ModifyLoadBalancerAttributes",
        *_BALANCER,
        build=lambda i: {"LoadBalancerArn": _BALANCER_ARN, "Attributes": _pairs(i, _BALANCER)},
    ),
    enforceSecurityGroupInboundRulesOnPrivateLinkTraffic="SetSecurityGroups, on or off",
)
made(
    "lb/targetGroup:TargetGroup",
    call("elbv2", "CreateTargetGroup", "healthCheck", build=_health_check),
    call(
        "elbv2",
        "ModifyTargetGroupAttributes",
        *_GROUP,
        build=lambda i: {"TargetGroupArn": _GROUP_ARN, "Attributes": _pairs(i, _GROUP)},
    ),
    targetGroupHealth="attributes with words and counts: see limits",
)
made(
    "route53/record:Record",
    call("route53", "ChangeResourceRecordSets", "name", "type", "zoneId", "ttl", build=_record),
    aliases="names of AWS's own",
    records="addresses",
)
made("route53/zone:Zone", call("route53", "CreateHostedZone", "comment", "vpcs", build=_zone))
made(
    "s3/bucket:Bucket",
    call("s3", "CreateBucket"),
    forceDestroy="the provider's own: whether it empties the bucket",
)
made(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    call("s3", "PutBucketLifecycleConfiguration", "rules", build=_lifecycle),
)
made(
    "s3/bucketObjectv2:BucketObjectv2",
    call("s3", "PutObject", names={}),
    content="the body",
    source="the body's file",
    overrideProvider="the provider's own: which default tags it lays on",
)
made("s3/bucketPolicy:BucketPolicy", call("s3", "PutBucketPolicy"))
made(
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    call(
        "s3",
        "PutPublicAccessBlock",
        *("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"),
        build=lambda _: {"PublicAccessBlockConfiguration": {}},
    ),
)
made(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    call(
        "s3",
        "PutBucketEncryption",
        "rules",
        build=lambda i: {
            "ServerSideEncryptionConfiguration": {
                "Rules": [
                    {
                        "ApplyServerSideEncryptionByDefault": {
                            "SSEAlgorithm": rule["applyServerSideEncryptionByDefault"][
                                "sseAlgorithm"
                            ]
                        }
                    }
                    for rule in i["rules"]
                ]
            }
        },
    ),
)
made(
    "s3/bucketVersioning:BucketVersioning",
    call(
        "s3",
        "PutBucketVersioning",
        "versioningConfiguration",
        build=lambda i: {
            "VersioningConfiguration": {"Status": i["versioningConfiguration"]["status"]}
        },
    ),
)
made("scheduler/schedule:Schedule", call("scheduler", "CreateSchedule"))
made(
    "secretsmanager/secret:Secret",
    call("secretsmanager", "CreateSecret"),
    recoveryWindowInDays="of DeleteSecret: see limits",
)
made("secretsmanager/secretVersion:SecretVersion", call("secretsmanager", "PutSecretValue"))
made(
    "sns/topic:Topic",
    call("sns", "CreateTopic", *_TOPIC, build=lambda i: {"Attributes": _attributes(i, _TOPIC)}),
)
made(
    "sns/topicPolicy:TopicPolicy",
    call(
        "sns",
        "SetTopicAttributes",
        "arn",
        "policy",
        build=lambda i: {
            "TopicArn": i["arn"],
            "AttributeName": "Policy",
            "AttributeValue": i["policy"],
        },
    ),
)
made(
    "sns/topicSubscription:TopicSubscription", call("sns", "Subscribe", names={"topic": "TopicArn"})
)
made(
    "sqs/queue:Queue",
    call(
        "sqs",
        "CreateQueue",
        *_QUEUE,
        names={"name": "QueueName"},
        build=lambda i: {"Attributes": _attributes(i, _QUEUE)},
    ),
)
made(
    "sqs/queuePolicy:QueuePolicy",
    call(
        "sqs",
        "SetQueueAttributes",
        "policy",
        build=lambda i: {"Attributes": {"Policy": i["policy"]}},
    ),
)
made(
    "sqs/redriveAllowPolicy:RedriveAllowPolicy",
    call(
        "sqs",
        "SetQueueAttributes",
        "redriveAllowPolicy",
        build=lambda i: {"Attributes": {"RedriveAllowPolicy": i["redriveAllowPolicy"]}},
    ),
)
made(
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    call("ec2", "AuthorizeSecurityGroupEgress", *_RULE, build=_rule),
)
made(
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    call("ec2", "AuthorizeSecurityGroupIngress", *_RULE, build=_rule),
)

# Names that pulumi-aws had for them before.
for older, now in (
    ("alb/listener:Listener", "lb/listener:Listener"),
    ("alb/loadBalancer:LoadBalancer", "lb/loadBalancer:LoadBalancer"),
    ("alb/targetGroup:TargetGroup", "lb/targetGroup:TargetGroup"),
    ("s3/bucketV2:BucketV2", "s3/bucket:Bucket"),
    (
        "s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
        "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    ),
    ("s3/bucketVersioningV2:BucketVersioningV2", "s3/bucketVersioning:BucketVersioning"),
):
    TYPES[f"aws:{older}"] = TYPES[f"aws:{now}"]

# Only their form counts: the attributes' call wants the ARN that the create call has answered.
_BALANCER_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/n/0123456789abcdef"
)
_GROUP_ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/n/0123456789abcdef"
