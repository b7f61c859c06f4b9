"""The calls each role of ours makes, by its policy's name: what its rights are for.

Those of functions, NTH and LBC are the ones that the twin's journal holds (`iam_judged`). Those of
programs that do not run there come from their documentation: Karpenter's and the cluster
autoscaler's policies, Lambda's needs in a VPC, DLM's of a snapshot policy, EMR Serverless's of a
Spark job with the Glue catalog.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from core.settings.functions import kept_fields
from infra.functions.catalogue import EVERY, LOOP, SLACK
from infra.functions.definition import Definition
from local.iam.requests import Call
from tests.unit.infra.recording import ACCOUNT, REGION

PREFIX = "test-orders"
GROUP, SYSTEM_GROUP = f"{PREFIX}-broker-a", f"eks-{PREFIX}-system-0a1b"
INSTANCE, VOLUME, SNAPSHOT = "i-0123456789abcdef0", "vol-0123456789abcdef0", "snap-0123"
TEMPLATE, SUBNET = "lt-0123456789abcdef0", "subnet-0123456789abcdefa"
TARGETS = (
    f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:targetgroup/{PREFIX}-10/0123456789abcdef"
)
BILLING, ARCHIVE = f"{PREFIX}-billing-{ACCOUNT}", f"{PREFIX}-incidents-{ACCOUNT}"
ALERTS = f"arn:aws:sns:{REGION}:{ACCOUNT}:{PREFIX}-alerts"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
LEDGER, DATABASE = f"{PREFIX}-incidents", "test_orders"
OWNED = {f"kubernetes.io/cluster/{PREFIX}": "owned", "karpenter.sh/nodepool": "broker"}
# What the resources above are tagged with, by the end of their ARNs.
TAGS: Mapping[str, Mapping[str, str]] = {
    TARGETS.rpartition("/")[2]: {"stillwater:cluster": "orders", "stillwater:environment": "test"},
    INSTANCE: {**OWNED, "aws:autoscaling:groupName": GROUP},
    TEMPLATE: OWNED,
    VOLUME: {"stillwater:snapshots": PREFIX},
    SNAPSHOT: {"stillwater:snapshots": PREFIX},
}


def call(service: str, operation: str, /, **parameters: Any) -> Call:
    return Call(service=service, operation=operation, region=REGION, parameters=parameters)


def look(service: str, *operations: str) -> list[Call]:
    return [call(service, operation) for operation in operations]


def queue(name: str, *operations: str) -> list[Call]:
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{PREFIX}-{name}"
    return [call("sqs", operation, QueueUrl=url) for operation in operations]


def fed(name: str) -> list[Call]:
    """Return what Lambda does for a function that a queue feeds."""
    return queue(name, "ReceiveMessage", "DeleteMessage", "GetQueueAttributes")


def item(operation: str, key: str) -> Call:
    where = "Item" if operation == "PutItem" else "Key"
    return call("dynamodb", operation, TableName=LEDGER, **{where: {"pk": {"S": key}}})


def ledger(*keys: str) -> list[Call]:
    return [item(operation, key) for key in keys for operation in ("GetItem", "PutItem")]


OPEN = call("dynamodb", "Query", TableName=LEDGER, IndexName="open")


def group(*operations: str, name: str = GROUP) -> list[Call]:
    return [call("autoscaling", operation, AutoScalingGroupName=name) for operation in operations]


def logs(role: str) -> list[Call]:
    where = {
        "logGroupName": f"/aws/lambda/{PREFIX}-{role}",
        "logStreamName": "2026/11/22/[$LATEST]x",
    }
    return [call("logs", operation, **where) for operation in ("CreateLogStream", "PutLogEvents")]


def in_a_vpc() -> list[Call]:
    interface = {"NetworkInterfaceId": "eni-0123456789abcdef0"}
    return [
        call("ec2", "CreateNetworkInterface"),
        *(
            call("ec2", operation, **interface)
            for operation in (
                "AssignPrivateIpAddresses",
                "DeleteNetworkInterface",
                "UnassignPrivateIpAddresses",
            )
        ),
        *look("ec2", "DescribeNetworkInterfaces", "DescribeSubnets"),
    ]


def secret(name: str) -> Call:
    return call("secretsmanager", "GetSecretValue", SecretId=name)


def tagged(*kinds: str) -> list[dict[str, Any]]:
    tags = [{"Key": key, "Value": value} for key, value in OWNED.items()]
    return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def objects(bucket: str, key: str, *operations: str) -> list[Call]:
    return [call("s3", operation, Bucket=bucket, Key=key) for operation in operations]


FROM_TEMPLATE = {"LaunchTemplateSpecification": {"LaunchTemplateId": TEMPLATE}}
LAUNCHED = ("instance", "network-interface", "volume")
# What a function does by its nature is not here: `by_nature`.
_OWN: Mapping[str, Sequence[Call]] = {
    "handlers-interruption-policy": [
        *queue("ticks", "SendMessage"),
        *queue("stories", "SendMessage"),
        *ledger("incident#i-0"),
        OPEN,
        *look("ec2", "DescribeInstances", "DescribeVolumes", "DescribeAvailabilityZones"),
    ],
    "handlers-tick-policy": [
        *queue("ticks", "SendMessage"),
        *queue("nth", "SendMessage"),
        *queue("stories", "SendMessage"),
        *ledger("incident#i-0"),
        OPEN,
        *look("ec2", "DescribeInstances", "DescribeInstanceStatus", "DescribeVolumes"),
        *look("ec2", "DescribeAvailabilityZones"),
        *look("autoscaling", "DescribeAutoScalingGroups"),
        *group("CompleteLifecycleAction", "RecordLifecycleActionHeartbeat"),
        *group("SetDesiredCapacity", "SetInstanceProtection"),
        call("autoscaling", "TerminateInstanceInAutoScalingGroup", InstanceId=INSTANCE),
        *look("ec2", "DescribeReplaceRootVolumeTasks"),
        call(
            "ec2",
            "CreateReplaceRootVolumeTask",
            InstanceId=INSTANCE,
            ImageId="ami-0123456789abcdef0",
            TagSpecifications=[
                {
                    "ResourceType": "replace-root-volume-task",
                    "Tags": [{"Key": "stillwater.dev/incident", "Value": INSTANCE}],
                }
            ],
        ),
        call("sns", "Publish", TopicArn=ALERTS),
    ],
    "gate-policy": [
        *queue("ticks", "SendMessage"),
        *queue("stories", "SendMessage"),
        *ledger("incident#i-0"),
        OPEN,
        *look("ec2", "DescribeInstances"),
        *look("autoscaling", "DescribeAutoScalingGroups"),
    ],
    "handlers-sweep-policy": [
        *queue("ticks", "SendMessage"),
        *queue("stories", "SendMessage"),
        *ledger("incident#i-0"),
        OPEN,
        *look("ec2", "DescribeInstances", "DescribeInstanceStatus"),
        *look("autoscaling", "DescribeAutoScalingGroups"),
        *objects(ARCHIVE, "incidents/2026/i-0.json", "PutObject"),
    ],
    "handlers-rotate-policy": [
        *queue("ticks", "SendMessage"),
        *ledger("rotation#r"),
        OPEN,
        *look("ec2", "DescribeImages", "DescribeInstances", "DescribeLaunchTemplateVersions"),
        *look("autoscaling", "DescribeAutoScalingGroups"),
    ],
    "volumes-function-policy": [
        *ledger("volume#vol-0"),
        item("GetItem", "incident#i-0"),
        item("GetItem", "rotation#orders"),
        OPEN,
        *look("ec2", "DescribeInstances", "DescribeVolumes", "DescribeVolumesModifications"),
        *look("cloudwatch", "GetMetricData"),
    ],
    "samples-function-policy": [
        call("s3", "ListObjectsV2", Bucket=BILLING, Prefix="metrics/"),
        *objects(BILLING, "metrics/hour-2026-11-20T09.json.gz", "PutObject"),
    ],
    "webhook-function-policy": [
        *queue("ticks", "SendMessage"),
        *ledger("incident#i-0"),
        item("PutItem", "ignored#0"),
        secret(f"{PREFIX}/nth-webhook"),
    ],
    "stories-slack-policy": [
        *queue("stories", "SendMessage"),
        item("GetItem", "incident#i-0"),
        item("GetItem", "rotation#r"),
        *ledger("story#i-0"),
        secret("orders/slack"),
    ],
    "health-function-policy": [item("GetItem", "freezes#orders"), OPEN],
    "nth-policy": [
        *queue("nth", "ReceiveMessage", "DeleteMessage"),
        *group("CompleteLifecycleAction"),
        *look("ec2", "DescribeInstances"),
    ],
    "lbc-policy": [
        *look("elbv2", "DescribeTargetGroups", "DescribeTargetHealth"),
        *look("ec2", "DescribeSecurityGroups", "DescribeVpcs"),
        call("elbv2", "RegisterTargets", TargetGroupArn=TARGETS),
        call("elbv2", "DeregisterTargets", TargetGroupArn=TARGETS),
    ],
    "autoscaler-policy": [
        *group("SetDesiredCapacity"),
        *group("SetDesiredCapacity", name=SYSTEM_GROUP),
        *group("TerminateInstanceInAutoScalingGroup", name=SYSTEM_GROUP),
        call("eks", "DescribeNodegroup", clusterName=PREFIX, nodegroupName=f"{PREFIX}-system"),
        *look("autoscaling", "DescribeAutoScalingGroups", "DescribeAutoScalingInstances"),
        *look("autoscaling", "DescribeLaunchConfigurations", "DescribeScalingActivities"),
        *look("autoscaling", "DescribeTags"),
        *look("ec2", "DescribeImages", "DescribeInstanceTypes", "DescribeLaunchTemplateVersions"),
        *look("ec2", "GetInstanceTypesFromInstanceRequirements"),
    ],
    "snapshots-policy": [
        *look("ec2", "DescribeInstances", "DescribeSnapshots", "DescribeVolumes"),
        call(
            "ec2",
            "CreateSnapshot",
            VolumeId=VOLUME,
            TagSpecifications=[{"ResourceType": "snapshot", "Tags": [{"Key": "k", "Value": "v"}]}],
        ),
        call("ec2", "DeleteSnapshot", SnapshotId=SNAPSHOT),
    ],
    "karpenter-policy": [
        *look("ec2", "DescribeCapacityReservations", "DescribeImages", "DescribeInstanceStatus"),
        *look("ec2", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes"),
        *look("ec2", "DescribeInstances", "DescribeLaunchTemplates", "DescribePlacementGroups"),
        *look("ec2", "DescribeSecurityGroups", "DescribeSpotPriceHistory", "DescribeSubnets"),
        *look("iam", "ListInstanceProfiles"),
        *look("pricing", "GetProducts"),
        call("iam", "GetInstanceProfile", InstanceProfileName=f"{PREFIX}-nodes"),
        call("eks", "DescribeCluster", name=PREFIX),
        *queue("karpenter", "ReceiveMessage", "DeleteMessage"),
        call("sqs", "GetQueueUrl", QueueName=f"{PREFIX}-karpenter"),
        call("ec2", "CreateLaunchTemplate", TagSpecifications=tagged("launch-template")),
        call(
            "ec2",
            "CreateFleet",
            LaunchTemplateConfigs=[FROM_TEMPLATE],
            TagSpecifications=tagged("fleet", *LAUNCHED),
        ),
        call(
            "ec2",
            "RunInstances",
            LaunchTemplate={"LaunchTemplateId": TEMPLATE},
            ImageId="ami-0123",
            SubnetId=SUBNET,
            SecurityGroupIds=["sg-0123"],
            IamInstanceProfile={"Name": f"{PREFIX}-nodes"},
            TagSpecifications=tagged(*LAUNCHED),
        ),
        call("ec2", "CreateTags", Resources=[INSTANCE], Tags=[{"Key": "Name", "Value": "n"}]),
        call("ec2", "TerminateInstances", InstanceIds=[INSTANCE]),
        call("ec2", "DeleteLaunchTemplate", LaunchTemplateId=TEMPLATE),
    ],
    "analytics-job-policy": [
        call("s3", "ListObjectsV2", Bucket=BILLING, Prefix="export/"),
        call("s3", "ListObjectsV2", Bucket=ARCHIVE, Prefix="incidents/"),
        *objects(BILLING, "export/part.parquet", "GetObject"),
        *objects(ARCHIVE, "incidents/2026/i-0.json", "GetObject"),
        *objects(BILLING, "tables/costs/part.parquet", "GetObject", "PutObject", "DeleteObject"),
        call("glue", "GetDatabase", Name=DATABASE),
        call("glue", "GetTables", DatabaseName=DATABASE),
        call("glue", "GetTable", DatabaseName=DATABASE, Name="costs"),
        call("glue", "CreateTable", DatabaseName=DATABASE, TableInput={"Name": "costs"}),
        call("glue", "UpdateTable", DatabaseName=DATABASE, TableInput={"Name": "costs"}),
    ],
    "analytics-job-schedule-policy": [
        call(
            "emr-serverless",
            "StartJobRun",
            applicationId=f"{PREFIX}-reports",
            executionRoleArn=f"arn:aws:iam::{ACCOUNT}:role/{PREFIX}-report-job",
            tags={"k": "v"},
        )
    ],
}


def by_nature(function: Definition) -> Sequence[Call]:
    """Return what Lambda does with a function's role, and how the function reads its settings."""
    reads = function.reads
    return [
        *logs(function.name),
        *([] if function.kubernetes is None else in_a_vpc()),
        *([] if reads is None else fed(reads.queue)),
        *(
            [item("GetItem", f"settings#{function.name}-0a1b")]
            if kept_fields(function.settings)
            else []
        ),
    ]


def _policy(function: Definition) -> str:
    if function in LOOP:
        return f"handlers-{function.name}-policy"
    return "stories-slack-policy" if function is SLACK else f"{function.name}-function-policy"


# Policy -> the function it is for.
FUNCTIONS: Mapping[str, Definition] = {_policy(each): each for each in EVERY}
CALLS: Mapping[str, Sequence[Call]] = {
    **_OWN,
    **{name: [*_OWN.get(name, ()), *by_nature(each)] for name, each in FUNCTIONS.items()},
}
