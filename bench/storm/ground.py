"""What bench.interruptions stands on: the twin's AWS and control plane, 200 instances, two queues.

The functions are the deployed zip under AWS's own runtime client, fed by the twin's event source
mappings. The API server is the real one, with a Node and a broker's pod per instance; no kubelet
runs, so a pod ends the moment it is evicted. Kafka is absent: no decision measured here asks it.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from botocore.credentials import ReadOnlyCredentials

from bench.storm.burst import ACCOUNT, REGION, Member
from core import naming
from core.cluster import ClusterSpec
from core.errors import StillwaterError
from core.fixed import EVENTS_MAX_RECEIVE_COUNT, TERMINATING, TICKS_MAX_RECEIVE_COUNT
from infra import packaging
from infra.function import MEMORY_MIB
from infra.functions import INTERRUPTION_BATCH, TICK_BATCH, environment
from infra.versions import LAMBDA_RUNTIME
from local import environment as twin_environment
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError
from local.kubernetes.eks_token import token
from local.pulumi import aws_auth
from local.twin import Twin

NAMESPACE = "kafka"
POOL = "broker"
WRITERS = 8
WAIT_SECONDS = 60.0
LAMBDAS = {"interruption": INTERRUPTION_BATCH, "tick": TICK_BATCH}


@dataclass
class Ground:
    """A twin with a cluster's worth of instances, queues, table and functions."""

    twin: Twin
    spec: ClusterSpec
    members: tuple[Member, ...] = ()
    queues: dict[str, str] = field(default_factory=dict)
    mappings: dict[str, str] = field(default_factory=dict)
    _clients: dict[str, Any] = field(default_factory=dict)

    def aws(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.twin.aws(service)
        return self._clients[service]

    @property
    def table(self) -> str:
        return naming.ledger_table(self.spec.prefix)

    def send(self, queue: str, bodies: Sequence[str]) -> None:
        """Put messages into a queue, in their order."""
        for start in range(0, len(bodies), 10):
            self.aws("sqs").send_message_batch(
                QueueUrl=self.queues[queue],
                Entries=[
                    {"Id": str(number), "MessageBody": body}
                    for number, body in enumerate(bodies[start : start + 10])
                ],
            )

    def left_in(self, queue: str) -> int:
        """Return how many messages a queue still has, those being worked on included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.aws("sqs").get_queue_attributes(
            QueueUrl=self.queues[queue], AttributeNames=names
        )
        return sum(int(answer["Attributes"][name]) for name in names)

    def received(self, queue: str) -> list[str]:
        """Take everything visible out of a queue."""
        bodies: list[str] = []
        while (
            found := self.aws("sqs")
            .receive_message(QueueUrl=self.queues[queue], MaxNumberOfMessages=10)
            .get("Messages")
        ):
            for message in found:
                bodies.append(message["Body"])
                self.aws("sqs").delete_message(
                    QueueUrl=self.queues[queue], ReceiptHandle=message["ReceiptHandle"]
                )
        return bodies

    def items(self) -> list[dict[str, Any]]:
        """Return everything in the ledger's table."""
        pages = self.aws("dynamodb").get_paginator("scan").paginate(TableName=self.table)
        return [item for page in pages for item in page["Items"]]

    def forget(self) -> None:
        """Empty the ledger: whatever still ticks finds nothing and ends."""
        for item in self.items():
            self.aws("dynamodb").delete_item(TableName=self.table, Key={"pk": item["pk"]})

    def feed(self, function: str, *, enabled: bool) -> None:
        """Let a function's queue reach it, or not."""
        self.aws("lambda").update_event_source_mapping(
            UUID=self.mappings[function], Enabled=enabled
        )

    def renew(self, number: int) -> None:
        """Make the next invocation of every function a cold one: new settings, new processes."""
        for role in LAMBDAS:
            name = naming.function(self.spec.prefix, role)
            found = self.aws("lambda").get_function_configuration(FunctionName=name)
            variables = found["Environment"]["Variables"] | {"BENCH_ROUND": str(number)}
            self.aws("lambda").update_function_configuration(
                FunctionName=name, Environment={"Variables": variables}
            )

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the cluster's nodes by name."""
        items = self.twin.api.get("/api/v1/nodes")["items"]
        return {item["metadata"]["name"]: item for item in items}

    def pods(self) -> dict[str, str]:
        """Return the nodes that still run their broker, by the pod's name."""
        items = self.twin.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items}


@dataclass(frozen=True)
class Progress:
    """Tells whoever watches what is done now, and what has been done."""

    now: Callable[[str], None]
    done: Callable[[str], None]


@contextmanager
def step(say: Progress, what: str) -> Iterator[None]:
    """Show a step while it lasts, and how long it took when it is over."""
    started = time.monotonic()
    say.now(what)
    yield
    say.done(f"{what}: {time.monotonic() - started:.1f} s")


def build(twin: Twin, spec: ClusterSpec, instances: int, say: Progress) -> Ground:
    """Make everything the measurements need."""
    ground = Ground(twin, spec)
    with step(say, f"{instances} instances in {len(spec.availability_zones)} groups"):
        ground.members = _instances(ground, instances)
    with step(say, "a Node and a broker's pod for each"):
        _kubernetes(ground)
    with step(say, "queues, ledger and functions"):
        _account(ground)
    return ground


def terminate(ground: Ground, members: Sequence[Member]) -> dict[str, str]:
    """Terminate instances through their groups; return what the groups announce, by instance."""
    for member in members:
        ground.aws("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=member.id, ShouldDecrementDesiredCapacity=True
        )
    found: dict[str, str] = {}

    def all_announced() -> bool:
        for body in ground.received("announced"):
            found[json.loads(body)["detail"]["EC2InstanceId"]] = body
        return {m.id for m in members} <= found.keys()

    until(all_announced, "every termination is announced")
    return found


def until(holds: Callable[[], bool], what: str, *, within_seconds: float = WAIT_SECONDS) -> None:
    """Wait for something; raise StillwaterError when it does not come true."""
    deadline = time.monotonic() + within_seconds
    while not holds():
        if time.monotonic() > deadline:
            raise StillwaterError(f"It did not happen within {within_seconds:.0f} s: {what}.")
        time.sleep(0.05)


def _instances(ground: Ground, count: int) -> tuple[Member, ...]:
    ec2, groups, number = ground.aws("ec2"), ground.aws("autoscaling"), ground.twin.place.number
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
        size = len(range(place, count, len(zones)))
        name = f"{ground.spec.prefix}-{naming.kafka_node_pool(POOL, zone)}"
        groups.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateId": template, "Version": "$Latest"},
            MinSize=0,
            MaxSize=2 * size,
            DesiredCapacity=size,
            VPCZoneIdentifier=subnet,
            Tags=[
                {
                    "Key": naming.managed_tag(ground.spec.prefix),
                    "Value": "true",
                    "PropagateAtLaunch": True,
                }
            ],
        )
        groups.put_lifecycle_hook(
            AutoScalingGroupName=name,
            LifecycleHookName=naming.DRAIN_HOOK,
            LifecycleTransition=TERMINATING,
            HeartbeatTimeout=3600,
            DefaultResult="ABANDON",
        )

    def found() -> list[Member]:
        pages = ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": ["running"]}]
        )
        return [
            Member(
                id=each["InstanceId"],
                zone=each["Placement"]["AvailabilityZone"],
                group=next(
                    tag["Value"]
                    for tag in each["Tags"]
                    if tag["Key"] == "aws:autoscaling:groupName"
                ),
                node=each["PrivateDnsName"],
            )
            for page in pages
            for reservation in page["Reservations"]
            for each in reservation["Instances"]
        ]

    until(lambda: len(found()) == count, f"{count} instances run", within_seconds=120.0)
    return tuple(sorted(found(), key=lambda member: member.id))


def _kubernetes(ground: Ground) -> None:
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


def _node_and_pod(ground: Ground, number: int, member: Member) -> None:
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


def _account(ground: Ground) -> None:
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
    role = ground.aws("iam").create_role(
        RoleName=f"{prefix}-bench", AssumeRolePolicyDocument=json.dumps({"Statement": []})
    )["Role"]["Arn"]
    cluster = eks.create_cluster(name=prefix, roleArn=role, resourcesVpcConfig={})["cluster"]
    aws_auth.put(
        ground.twin.place, aws_auth.row(role, "STANDARD", ["system:masters"], "stillwater")
    )
    _functions(ground, role)
    _wait_for_login(ground, cluster["name"])


def _queue(ground: Ground, role: str, visibility_seconds: int, most_receives: int | None) -> str:
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


def _announce(ground: Ground) -> None:
    """Keep what the groups announce for the burst: no function and no handler hears it yet."""
    pattern = {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
    }
    ground.aws("events").put_rule(Name="bench", EventPattern=json.dumps(pattern))
    target = _arn("sqs", naming.queue(ground.spec.prefix, "announced"))
    ground.aws("events").put_targets(Rule="bench", Targets=[{"Id": "queue", "Arn": target}])


def _table(ground: Ground) -> None:
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


def _functions(ground: Ground, role: str) -> None:
    package = packaging.build(ground.twin.place.path("zip"))
    variables = _settings(ground)
    for name, batch in LAMBDAS.items():
        function = naming.function(ground.spec.prefix, name)
        ground.aws("lambda").create_function(
            FunctionName=function,
            Runtime=LAMBDA_RUNTIME,
            Role=role,
            Handler=f"handlers.{name}.handler",
            Timeout=ground.spec.timings.lambda_timeout_seconds,
            MemorySize=MEMORY_MIB,
            Environment={"Variables": variables},
            Code={"ZipFile": package.path.read_bytes()},
        )
        queue = "events" if name == "interruption" else "ticks"
        ground.mappings[name] = ground.aws("lambda").create_event_source_mapping(
            EventSourceArn=_arn("sqs", naming.queue(ground.spec.prefix, queue)),
            FunctionName=function,
            BatchSize=batch,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )["UUID"]


def _settings(ground: Ground) -> Mapping[str, str]:
    """Return what infra renders for the functions of this spec, with this twin's addresses."""
    place = ground.twin.place
    arguments: Any = SimpleNamespace(
        spec=ground.spec,
        stories_queue=None,
        archive=SimpleNamespace(bucket="bench"),
        ledger=SimpleNamespace(table_name=ground.table),
        nth_queue_url=ground.queues["nth"],
        eks_endpoint=place.url("apiserver", "https"),
        eks_ca=base64.b64encode(control_plane.ca_file(place).read_bytes()).decode(),
        # Nobody answers there, and nothing that is measured asks.
        bootstrap=f"{place.nlb_host}:9092",
    )
    rendered: Any = environment(arguments, ground.queues["ticks"])
    return dict(rendered)


def _wait_for_login(ground: Ground, cluster: str) -> None:
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
