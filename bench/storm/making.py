"""Starts bench.interruptions' ground: the twin's AWS and API server, 200 instances, two queues.

The functions are the deployed zip under AWS's own runtime client, fed by the twin's event source
mappings. The API server is the real one, with a Node and a broker's pod per instance; no kubelet
runs, so a pod ends the moment it is evicted. Kafka is absent: no decision measured here asks it.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.credentials import ReadOnlyCredentials

from bench.storm.burst import ACCOUNT, REGION, Member
from bench.storm.ground import LAMBDAS, NAMESPACE, BenchProgress, StormTwin, step
from bench.waiting import until
from core.cluster import ClusterSpec
from core.cluster.operated import operated_cluster
from core.cluster.operation import memory_mib
from core.ground import naming
from core.ground.constants import EVENTS_MAX_RECEIVE_COUNT, TERMINATING, TICKS_MAX_RECEIVE_COUNT
from core.settings import codec
from core.settings.codec import SETTINGS
from core.settings.functions import ApiServer
from infra.functions import packaging
from infra.functions.definition import Definition
from infra.functions.function import fields_of
from infra.versions import LAMBDA_RUNTIME
from local import environment as twin_environment
from local.aws.instances import MARKET_TAG
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError
from local.kubernetes.eks_token import token
from local.pulumi import aws_auth
from local.twin import Twin

POOL = "broker"
WRITERS = 8


def build(twin: Twin, spec: ClusterSpec, instances: int, say: BenchProgress) -> StormTwin:
    """Make everything the measurements need."""
    ground = StormTwin(twin, spec)
    with step(say, f"{instances} instances in {len(spec.availability_zones)} groups"):
        ground.members = _instances(ground, instances)
    with step(say, "a Node and a broker's pod for each"):
        _kubernetes(ground)
    with step(say, "queues, ledger and functions"):
        _account(ground)
    return ground


def _instances(ground: StormTwin, count: int) -> tuple[Member, ...]:
    ec2, number = ground.aws("ec2"), ground.twin.place.number
    image = ec2.describe_images()["Images"][0]["ImageId"]
    template = ec2.create_launch_template(
        LaunchTemplateName="bench",
        LaunchTemplateData={"ImageId": image, "InstanceType": "r7g.large"},
    )["LaunchTemplate"]["LaunchTemplateId"]
    vpc = ec2.create_vpc(CidrBlock=f"10.{number}.128.0/17")["Vpc"]["VpcId"]
    zones = ground.spec.availability_zones
    for place, zone in enumerate(zones):
        subnet = ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.{number}.{128 + 16 * place}.0/20", AvailabilityZone=zone
        )["Subnet"]["SubnetId"]
        name = f"{ground.spec.prefix}-{naming.kafka_node_pool(POOL, zone)}"
        _group(ground, name, template, subnet, size=len(range(place, count, len(zones))))
    until(lambda: len(_running(ec2)) == count, f"{count} instances run", within_seconds=120.0)
    return tuple(sorted(_running(ec2), key=lambda member: member.id))


def _group(ground: StormTwin, name: str, template: str, subnet: str, *, size: int) -> None:
    groups = ground.aws("autoscaling")
    tag = {
        "Key": naming.managed_tag(ground.spec.prefix),
        "Value": "true",
        "PropagateAtLaunch": True,
    }
    groups.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": template, "Version": "$Latest"},
        MinSize=0,
        MaxSize=2 * size,
        DesiredCapacity=size,
        VPCZoneIdentifier=subnet,
        # EC2 warns spot instances alone, and a fifth of them are warned.
        Tags=[tag, {"Key": MARKET_TAG, "Value": "spot", "PropagateAtLaunch": True}],
    )
    groups.put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName=naming.DRAIN_HOOK,
        LifecycleTransition=TERMINATING,
        HeartbeatTimeout=3600,
        DefaultResult="ABANDON",
    )


def _running(ec2: Any) -> list[Member]:
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-state-name", "Values": ["running"]}]
    )
    return [
        Member(
            id=each["InstanceId"],
            zone=each["Placement"]["AvailabilityZone"],
            group=next(t["Value"] for t in each["Tags"] if t["Key"] == "aws:autoscaling:groupName"),
            node=each["PrivateDnsName"],
        )
        for page in pages
        for reservation in page["Reservations"]
        for each in reservation["Instances"]
    ]


def _kubernetes(ground: StormTwin) -> None:
    api = ground.twin.api
    api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})

    def account_exists() -> bool:
        try:
            api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default")
        except ApiError:
            return False
        return True

    until(account_exists, "the namespace has its ServiceAccount")
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda pair: _node_and_pod(ground, *pair), enumerate(ground.members)))


def _node_and_pod(ground: StormTwin, number: int, member: Member) -> None:
    api, cluster = ground.twin.api, ground.spec.name
    api.post(
        "/api/v1/nodes",
        {
            "metadata": {
                "name": member.node,
                "labels": {
                    "kubernetes.io/hostname": member.node,
                    naming.ZONE_LABEL: member.zone,
                    naming.NODE_POOL_LABEL: POOL,
                },
            },
            "spec": {"providerID": f"aws:///{member.zone}/{member.id}"},
        },
    )
    node_pool = naming.kafka_node_pool(POOL, member.zone)
    api.post(
        f"/api/v1/namespaces/{NAMESPACE}/pods",
        {
            "metadata": {
                "name": naming.pod(cluster, node_pool, 10 + number),
                "labels": {
                    naming.CLUSTER_LABEL: cluster,
                    naming.POOL_LABEL: node_pool,
                    naming.BROKER_ROLE_LABEL: "true",
                    "strimzi.io/controller-role": "false",
                },
            },
            "spec": {
                "nodeName": member.node,
                # Nobody is there to stop a process, so none is waited for.
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "kafka", "image": "kafka"}],
            },
        },
    )


def _account(ground: StormTwin) -> None:
    prefix, timings = ground.spec.prefix, ground.spec.timings
    visibility = timings.queue_visibility_timeout_seconds
    limits = {"events": EVENTS_MAX_RECEIVE_COUNT, "ticks": TICKS_MAX_RECEIVE_COUNT}
    for role in ("events", "ticks", "nth", "alone", "announced"):
        # NTH's own guide: 20 s until a message is seen again, and no dead letters.
        seconds = 20 if role == "alone" else visibility
        ground.queues[role] = _queue(ground, role, seconds, limits.get(role))
    _announce(ground)
    _table(ground)
    eks = ground.aws("eks")
    role = _role(ground, f"{prefix}-bench")
    cluster = eks.create_cluster(name=prefix, roleArn=role, resourcesVpcConfig={})["cluster"]
    aws_auth.put(
        ground.twin.place, aws_auth.row(role, "STANDARD", ["system:masters"], "stillwater")
    )
    _functions(ground, role)
    _wait_for_login(ground, cluster["name"])


def _role(ground: StormTwin, name: str) -> str:
    """Return a role of the functions that may do everything: rights are not what is measured."""
    iam = ground.aws("iam")
    trust = {"Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    made = iam.create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps({"Statement": [{"Effect": "Allow", **trust}]}),
    )
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.put_role_policy(
        RoleName=name,
        PolicyName="everything",
        PolicyDocument=json.dumps({"Statement": [everything]}),
    )
    return str(made["Role"]["Arn"])


def _queue(ground: StormTwin, role: str, visibility_seconds: int, most_receives: int | None) -> str:
    sqs, name = ground.aws("sqs"), naming.queue(ground.spec.prefix, role)
    attributes = {"VisibilityTimeout": str(visibility_seconds)}
    if most_receives is not None:
        dead = naming.dead_letter_queue(name)
        ground.queues[f"{role} dead letters"] = sqs.create_queue(QueueName=dead)["QueueUrl"]
        attributes["RedrivePolicy"] = json.dumps(
            {"deadLetterTargetArn": _arn("sqs", dead), "maxReceiveCount": most_receives}
        )
    return str(sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])


def _arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"


def _announce(ground: StormTwin) -> None:
    """Keep what the groups announce for the burst: no function and no handler hears it yet."""
    pattern = {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
    }
    ground.aws("events").put_rule(Name="bench", EventPattern=json.dumps(pattern))
    target = _arn("sqs", naming.queue(ground.spec.prefix, "announced"))
    ground.aws("events").put_targets(Rule="bench", Targets=[{"Id": "queue", "Arn": target}])


def _table(ground: StormTwin) -> None:
    ground.aws("dynamodb").create_table(
        TableName=ground.table,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "open")
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def _functions(ground: StormTwin, role: str) -> None:
    package = packaging.build(ground.twin.place.path("zip"))
    for definition in LAMBDAS:
        assert definition.reads is not None
        name, reads = definition.name, definition.reads
        function = naming.function(ground.spec.prefix, name)
        ground.aws("lambda").create_function(
            FunctionName=function,
            Runtime=LAMBDA_RUNTIME,
            Role=role,
            Handler=f"handlers.{name}.handler",
            Timeout=definition.timeout(operated_cluster(ground.spec)),
            MemorySize=memory_mib(ground.spec),
            Environment={"Variables": {SETTINGS: _settings(ground, definition)}},
            Code={"ZipFile": package.path.read_bytes()},
        )
        ground.mappings[name] = ground.aws("lambda").create_event_source_mapping(
            EventSourceArn=_arn("sqs", naming.queue(ground.spec.prefix, reads.queue)),
            FunctionName=function,
            BatchSize=reads.batch,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )["UUID"]


def _settings(ground: StormTwin, definition: Definition) -> str:
    """Return what infra renders for a function of this spec, with this twin's addresses."""
    place = ground.twin.place
    late = {
        "ledger_table": ground.table,
        "ticks_queue_url": ground.queues["ticks"],
        "nth_queue_url": ground.queues["nth"],
        "api": ApiServer(
            eks_cluster=ground.spec.prefix,
            endpoint=place.url("apiserver", "https"),
            ca_pem=control_plane.ca_file(place).read_text(),
        ),
        # Nobody answers there, and nothing that is measured asks.
        "kafka_bootstrap": (f"{place.nlb_host}:9092",),
    }
    told: Any = fields_of(definition, operated_cluster(ground.spec), late)
    return codec.write(codec.document(definition.settings(**told)))


def _wait_for_login(ground: StormTwin, cluster: str) -> None:
    stored = twin_environment.with_credentials(ground.twin.place)
    admin = ReadOnlyCredentials(stored["AWS_ACCESS_KEY_ID"], stored["AWS_SECRET_ACCESS_KEY"], None)
    server = ground.twin.place.url("apiserver", "https")

    def known() -> bool:
        bearer = token(cluster, admin, REGION)
        try:
            Api(server, bearer, control_plane.ca_file(ground.twin.place)).get("/api/v1/namespaces")
        except ApiError:
            return False
        return True

    until(known, "the API server knows AWS identities")
