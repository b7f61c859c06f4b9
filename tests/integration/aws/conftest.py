"""One real server of the twin's AWS for all tests here, with short boots and shutdowns."""

from __future__ import annotations

import http.client
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from local import environment, journal
from local.place import Place, claimed
from local.processes import Child, Processes

REPOSITORY = Path(__file__).resolve().parents[3]
SETTINGS = {
    "STILLWATER_BOOT_SECONDS": "0.3",
    "STILLWATER_SHUTDOWN_SECONDS": "0.2",
    "STILLWATER_HEALTH_CHECK_SECONDS": "0.3",
    "STILLWATER_LAUNCH_RETRY_SECONDS": "1",
    "STILLWATER_EKS_ENDPOINT_URL": "https://127.0.0.1:6443",
}
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass
class Cloud:
    """The server under test and short ways to what the tests build on it."""

    place: Place
    session: Any
    server: Child
    clients: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, service: str) -> Any:
        return self.client(service)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            self.clients[service] = self.session.client(
                service, endpoint_url=self.place.url("moto")
            )
        return self.clients[service]

    def name(self, prefix: str) -> str:
        return f"{prefix}-{uuid4().hex[:8]}"

    def eventually(self, what: Callable[[], Any], *, within_seconds: float = 15.0) -> Any:
        """Return the first true answer of `what`."""
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            if answer := what():
                return answer
            time.sleep(0.05)
        pytest.fail(f"it did not come true within {within_seconds:.0f} s")

    def network(self, zones: str = "a") -> list[str]:
        """Make a VPC with one subnet per zone letter; return the subnets."""
        vpc = self.ec2.create_vpc(CidrBlock=self.place.vpc_cidr)["Vpc"]["VpcId"]
        return [
            self.ec2.create_subnet(
                VpcId=vpc,
                CidrBlock=f"10.{self.place.number}.{number}.0/24",
                AvailabilityZone=f"us-east-1{zone}",
            )["Subnet"]["SubnetId"]
            for number, zone in enumerate(zones)
        ]

    def template(self, **data: Any) -> str:
        answer = self.ec2.create_launch_template(
            LaunchTemplateName=self.name("template"),
            LaunchTemplateData={"ImageId": "ami-12345678", "InstanceType": "r6i.large", **data},
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    def group(self, subnets: list[str], *hooks: str, seconds: int = 60, **settings: Any) -> str:
        """Make a group of one instance per subnet, wait until all are in service."""
        name = self.name("group")
        size = settings.pop("size", len(subnets))
        result = settings.pop("default_result", "ABANDON")
        self.autoscaling.create_auto_scaling_group(
            **{
                "AutoScalingGroupName": name,
                "LaunchTemplate": {"LaunchTemplateId": self.template(), "Version": "$Latest"},
                "MinSize": size,
                "MaxSize": 2 * size,
                "DesiredCapacity": size,
                "VPCZoneIdentifier": ",".join(subnets),
                **settings,
            }
        )
        for hook in hooks:
            self.autoscaling.put_lifecycle_hook(
                AutoScalingGroupName=name,
                LifecycleHookName=hook,
                LifecycleTransition=TERMINATING,
                HeartbeatTimeout=seconds,
                DefaultResult=result,
            )
        self.eventually(lambda: list(self.members(name).values()) == ["InService"] * size)
        return name

    def members(self, group: str) -> dict[str, str]:
        found = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        return {
            member["InstanceId"]: member["LifecycleState"]
            for entry in found["AutoScalingGroups"]
            for member in entry["Instances"]
        }

    def terminate(self, instance: str, *, decrement: bool = False) -> None:
        self.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance, ShouldDecrementDesiredCapacity=decrement
        )

    def complete(self, group: str, hook: str, instance: str, result: str = "CONTINUE") -> None:
        self.autoscaling.complete_lifecycle_action(
            AutoScalingGroupName=group,
            LifecycleHookName=hook,
            InstanceId=instance,
            LifecycleActionResult=result,
        )

    def queue(self, **attributes: str) -> str:
        answer = self.sqs.create_queue(QueueName=self.name("queue"), Attributes=attributes)
        return str(answer["QueueUrl"])

    def queue_arn(self, url: str) -> str:
        return "arn:aws:sqs:us-east-1:123456789012:" + url.rpartition("/")[2]

    def received(self, url: str) -> list[dict[str, Any]]:
        """Take everything visible out of a queue and return the bodies."""
        bodies = []
        while messages := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in messages:
                bodies.append(json.loads(message["Body"]))
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def listen(self, pattern: dict[str, Any]) -> str:
        """Make a queue that receives what matches a pattern."""
        url, rule = self.queue(), self.name("rule")
        self.events.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        self.events.put_targets(Rule=rule, Targets=[{"Id": "q", "Arn": self.queue_arn(url)}])
        return url

    def function(
        self, source: str, *, timeout: int = 5, variables: dict[str, str] | None = None
    ) -> str:
        """Deploy a function of one module, `handlers/__init__.py`, with its own role."""
        name = self.name("function")
        role = self.iam.create_role(
            RoleName=f"{name}-role", AssumeRolePolicyDocument=json.dumps({"Statement": []})
        )["Role"]["Arn"]
        self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Role=role,
            Handler="handlers.handler",
            Timeout=timeout,
            Environment={"Variables": variables or {}},
            Code={"ZipFile": zipped({"handlers/__init__.py": source})},
        )
        return name

    def invoke(self, function: str, event: Any = None) -> tuple[Any, str | None]:
        answer = self.client("lambda").invoke(
            FunctionName=function, Payload=json.dumps(event or {}).encode()
        )
        return json.loads(answer["Payload"].read() or b"null"), answer.get("FunctionError")

    def facts(self, event: str, **fields: str) -> list[dict[str, Any]]:
        """Return the journal's entries of one kind."""
        return [
            entry
            for entry in journal.read(self.place)
            if entry["event"] == event and fields.items() <= entry.items()
        ]


def zipped(files: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return sink.getvalue()


def answers(place: Place) -> bool:
    connection = http.client.HTTPConnection(place.host("moto"), place.port("moto"), timeout=2)
    try:
        connection.request("GET", "/moto-api/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def running(directory: Path) -> Iterator[Cloud]:
    with claimed() as claim:
        place = Place(claim.number, directory)
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            server = processes.start(
                "aws",
                [sys.executable, "-m", "local.aws.server"],
                environment={**environment.base(place), **SETTINGS},
                directory=REPOSITORY,
            )
            processes.wait_until(
                server, lambda: answers(place), within_seconds=60, what="it answers"
            )
            variables = environment.with_credentials(place)
            session = boto3.Session(
                aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
                region_name=environment.REGION,
            )
            yield Cloud(place, session, server)
        finally:
            processes.close()


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """The server all tests share."""
    with running(tmp_path_factory.mktemp("twin")) as shared:
        yield shared


@pytest.fixture
def own_cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A server for one test, to be ended by it."""
    with running(tmp_path) as own:
        yield own
