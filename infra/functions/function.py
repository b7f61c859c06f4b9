"""One Lambda function: its role, its log group, its code from the shared zip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam
from infra.functions.packaging import Package
from infra.versions import LAMBDA_ARCHITECTURE, LAMBDA_RUNTIME

TYPE = "stillwater:infra:Function"
LOG_RETENTION_DAYS = 30
# Lambda gives processor time by memory; below this the imports alone take seconds.
MEMORY_MIB = 512


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A function's place in the VPC, for one that speaks to the API server and the brokers."""

    subnet_ids: Sequence[pulumi.Input[str]]
    security_group_id: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class FunctionArgs:
    function_name: str
    description: str
    handler: str
    package: Package
    timeout_seconds: int
    environment: Mapping[str, pulumi.Input[str]]
    statements: Sequence[iam.Statement]
    account: iam.Account
    placement: Placement | None = None
    # How many may run at once; None: as many as the account allows.
    reserved_concurrency: int | None = None
    # What the function reads as it starts.
    after: Sequence[pulumi.Resource] = ()


class Function(pulumi.ComponentResource):
    """A function that may do what its statements say, and write its own log."""

    arn: pulumi.Output[str]
    name: pulumi.Output[str]
    role_arn: pulumi.Output[str]
    # What must exist before anything may invoke the function.
    ready: aws.lambda_.Function

    def __init__(
        self, name: str, args: FunctionArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        # Made here, or Lambda makes one that keeps everything for ever.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/lambda/{args.function_name}",
            retention_in_days=LOG_RETENTION_DAYS,
            opts=child,
        )
        role = aws.iam.Role(
            f"{name}-role",
            name=args.function_name,
            assume_role_policy=iam.trust("lambda.amazonaws.com"),
            opts=child,
        )
        permission = aws.iam.RolePolicy(
            f"{name}-policy",
            role=role.name,
            policy=iam.policy([*args.statements, *_own_statements(args, logs)]),
            opts=child,
        )
        function = aws.lambda_.Function(
            f"{name}-function",
            name=args.function_name,
            description=args.description,
            runtime=LAMBDA_RUNTIME,
            architectures=[LAMBDA_ARCHITECTURE],
            handler=args.handler,
            code=pulumi.FileArchive(str(args.package.path)),
            source_code_hash=args.package.source_code_hash,
            role=role.arn,
            timeout=args.timeout_seconds,
            memory_size=MEMORY_MIB,
            reserved_concurrent_executions=args.reserved_concurrency,
            environment=aws.lambda_.FunctionEnvironmentArgs(variables=dict(args.environment)),
            vpc_config=_vpc_config(args.placement),
            # Lambda checks its right to make network interfaces when it creates the function.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[permission, logs, *args.after]),
        )
        self.arn, self.name, self.role_arn = function.arn, function.name, role.arn
        self.ready = function
        self.register_outputs({"arn": self.arn, "name": self.name})


def _vpc_config(placement: Placement | None) -> aws.lambda_.FunctionVpcConfigArgs | None:
    if placement is None:
        return None
    return aws.lambda_.FunctionVpcConfigArgs(
        subnet_ids=list(placement.subnet_ids), security_group_ids=[placement.security_group_id]
    )


def _own_statements(args: FunctionArgs, logs: aws.cloudwatch.LogGroup) -> list[iam.Statement]:
    statements = [
        iam.Statement(
            sid="WriteItsLog",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            # A log group's streams.
            resources=[logs.arn.apply(lambda arn: f"{arn}:*")],
        )
    ]
    if args.placement is not None:
        statements += _network_statements(args.account, args.placement)
    return statements


def _network_statements(account: iam.Account, placement: Placement) -> list[iam.Statement]:
    interfaces = account.arn("ec2", "network-interface/*")
    # Lambda refuses a role that may delete interfaces alone: it asks for every kind of resource
    # (terraform-provider-aws#20698).
    anything = account.arn("ec2", "*/*")
    places = [
        pulumi.Output.from_input(subnet).apply(lambda id_: account.arn("ec2", f"subnet/{id_}"))
        for subnet in placement.subnet_ids
    ]
    group = pulumi.Output.from_input(placement.security_group_id).apply(
        lambda id_: account.arn("ec2", f"security-group/{id_}")
    )
    return [
        iam.Statement(
            sid="JoinItsSubnets",
            actions=["ec2:CreateNetworkInterface"],
            resources=[interfaces, group, *places],
        ),
        iam.Statement(
            sid="TendItsInterfaces",
            actions=[
                "ec2:AssignPrivateIpAddresses",
                "ec2:DeleteNetworkInterface",
                "ec2:UnassignPrivateIpAddresses",
            ],
            # Lambda names the interfaces itself; their ids are not known before.
            resources=[anything],
        ),
        iam.Statement(
            sid="SeeTheNetwork",
            actions=["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"],
            # Neither call takes a resource.
            resources=iam.ANY_RESOURCE,
        ),
    ]
