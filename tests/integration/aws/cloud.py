"""Short ways to what tests build on the twin's AWS, each of which is taken away again."""

import contextlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from local import environment, journal
from local.place import Place
from tests.integration.waiting import until

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass
class Cloud:
    """One test's view of AWS; `clear` deletes what the test made through it."""

    place: Place
    session: Any
    subnets: Mapping[str, str]  # zone letter -> subnet
    clients: dict[str, Any] = field(default_factory=dict)
    _made: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

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

    def eventually(self, what: Callable[[], Any]) -> Any:
        """Return the first true answer of `what`."""
        return until(what, "what the test waits for")

    def later(self, delete: Callable[..., Any], **arguments: Any) -> None:
        """Delete something when the test is over; what is gone by then is no mistake."""

        def gone() -> None:
            with contextlib.suppress(ClientError):
                delete(**arguments)

        self._made.callback(gone)

    def clear(self) -> None:
        self._made.close()

    def network(self, zones: str = "a") -> list[str]:
        """Return one subnet per zone letter."""
        return [self.subnets[zone] for zone in zones]

    def template(self, **data: Any) -> str:
        answer = self.ec2.create_launch_template(
            LaunchTemplateName=self.name("template"),
            LaunchTemplateData={"ImageId": "ami-12345678", "InstanceType": "r6i.large", **data},
        )
        template = str(answer["LaunchTemplate"]["LaunchTemplateId"])
        self.later(self.ec2.delete_launch_template, LaunchTemplateId=template)
        return template

    def group(self, subnets: list[str], *hooks: str, seconds: int = 60, **settings: Any) -> str:
        """Make a group of one instance per subnet, wait until all are in service."""
        name = self.name("group")
        size = settings.pop("size", len(subnets))
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
        self._made.callback(self._end_group, name)
        for hook in hooks:
            self.autoscaling.put_lifecycle_hook(
                AutoScalingGroupName=name,
                LifecycleHookName=hook,
                LifecycleTransition=TERMINATING,
                HeartbeatTimeout=seconds,
                DefaultResult="ABANDON",
            )
        self.eventually(lambda: list(self.members(name).values()) == ["InService"] * size)
        return name

    def _end_group(self, name: str) -> None:
        """Delete a group whatever holds its instances: policy, hooks, retention."""
        instances = self.members(name)
        with contextlib.suppress(ClientError):
            self.autoscaling.update_auto_scaling_group(
                AutoScalingGroupName=name,
                InstanceLifecyclePolicy={
                    "RetentionTriggers": {"TerminateHookAbandon": "terminate"}
                },
            )
            for hook in self.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=name)[
                "LifecycleHooks"
            ]:
                self.autoscaling.delete_lifecycle_hook(
                    AutoScalingGroupName=name, LifecycleHookName=hook["LifecycleHookName"]
                )
            self.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
        if instances:
            with contextlib.suppress(ClientError):
                self.ec2.terminate_instances(InstanceIds=list(instances))

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
        self.later(self.sqs.delete_queue, QueueUrl=answer["QueueUrl"])
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
        url = self.queue()
        self.rule(pattern, {"Id": "q", "Arn": self.queue_arn(url)})
        return url

    def rule(
        self, pattern: dict[str, Any], *targets: dict[str, Any], state: str = "ENABLED"
    ) -> str:
        """Make a rule that sends what matches a pattern to targets, each with an id."""
        rule = self.name("rule")
        self.events.put_rule(Name=rule, EventPattern=json.dumps(pattern), State=state)
        self.later(self.events.delete_rule, Name=rule)
        dead = [each["DeadLetterConfig"]["Arn"] for each in targets if "DeadLetterConfig" in each]
        for target in [*dead, *(each["Arn"] for each in targets)]:
            with contextlib.suppress(ClientError):  # never made: what the test may be about
                self._let_in(rule, target)
        self.events.put_targets(Rule=rule, Targets=list(targets))
        ids = [target["Id"] for target in targets]
        self.later(self.events.remove_targets, Rule=rule, Ids=ids)
        return rule

    def _let_in(self, rule: str, target: str) -> None:
        """Let a rule deliver to a queue or a function, as their own policies must."""
        service, _, _, name = target.split(":", 5)[2:]
        if service == "sqs":
            statement = {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": target,
            }
            url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
            policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        elif service == "lambda":
            self.client("lambda").add_permission(
                FunctionName=target,
                StatementId=rule,
                Action="lambda:InvokeFunction",
                Principal="events.amazonaws.com",
            )

    def function(
        self, source: str, *, timeout: int = 5, variables: dict[str, str] | None = None
    ) -> str:
        """Deploy a function of one module, `handlers/__init__.py`, with its own role."""
        name = self.name("function")
        role = self.role(f"{name}-role")["Arn"]
        self.later(self.client("lambda").delete_function, FunctionName=name)
        self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Role=role,
            Handler="handlers.handler",
            Timeout=timeout,
            Environment={"Variables": variables or {}},
            Code={"ZipFile": zip_of({"handlers/__init__.py": source})},
        )
        return name

    def role(self, name: str) -> dict[str, Any]:
        trust = {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        made = self.iam.create_role(
            RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]})
        )
        self.later(self.iam.delete_role, RoleName=name)
        # What is tested is what a function does, not whether it may.
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        self.iam.put_role_policy(
            RoleName=name,
            PolicyName="everything",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}),
        )
        self.later(self.iam.delete_role_policy, RoleName=name, PolicyName="everything")
        return dict(made["Role"])

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


def zip_of(files: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return sink.getvalue()


def session_of(place: Place) -> Any:
    """Return a boto3 session of a twin's administrator."""
    variables = environment.with_credentials(place)
    return boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
