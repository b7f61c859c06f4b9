"""Makes a Lambda function of its definition, and the ledger's table with its archive.

A function has a role, a log group, settings and code from the shared zip. Settings too long for its
environment are an item of the table, by its content's hash: a change makes another item before any
function is told of it, and takes the old one away after. Items end themselves by `expires_at`; the
archive holds a closed incident as a JSON line, by a key that names it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.ground import naming
from core.settings import codec
from core.settings.codec import CONTENT, KEPT, SETTINGS, kept_key
from core.settings.functions import ApiServer, FunctionSettings, kept_fields
from infra import buckets, iam
from infra.functions.definition import Definition, Scope
from infra.functions.packaging import FunctionPackage
from infra.versions import LAMBDA_ARCHITECTURE, LAMBDA_RUNTIME

LEDGER_TYPE = "stillwater:infra:Ledger"
KEY = "pk"
EXPIRES_AT = "expires_at"
OPEN_INDEX = "open"


class LedgerTable(pulumi.ComponentResource):
    """On-demand, restorable to any second of the last 35 days."""

    table_name: pulumi.Output[str]

    def __init__(
        self, name: str, cluster: Operated, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(LEDGER_TYPE, name, None, opts)
        table = aws.dynamodb.Table(
            f"{name}-table",
            name=naming.ledger_table(cluster.prefix),
            billing_mode="PAY_PER_REQUEST",
            hash_key=KEY,
            attributes=[{"name": name, "type": "S"} for name in (KEY, OPEN_INDEX)],
            global_secondary_indexes=[
                {
                    "name": OPEN_INDEX,
                    "key_schemas": [{"attribute_name": OPEN_INDEX, "key_type": "HASH"}],
                    "projection_type": "ALL",
                }
            ],
            ttl={"attribute_name": EXPIRES_AT, "enabled": True},
            point_in_time_recovery={"enabled": True},
            # With it go the hooks that wait, the lease and every drain that has not ended.
            deletion_protection_enabled=not cluster.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.table_name = table.name
        self.register_outputs({"table_name": self.table_name})


ARCHIVE_TYPE = "stillwater:infra:Archive"
# No cheaper class in between: one bills an object of a few KiB as 128.
KEPT_DAYS = 3 * 365
ABANDONED_UPLOAD_DAYS = 7
FOLDER = "incidents"
PREFIX = f"{FOLDER}/"


class ArchiveBucket(pulumi.ComponentResource):
    """An encrypted, private bucket that forgets after three years."""

    bucket: pulumi.Output[str]

    def __init__(self, name: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(ARCHIVE_TYPE, name, None, opts)
        bucket = aws.s3.Bucket(
            f"{name}-bucket",
            bucket=bucket_name(scope.cluster.prefix, scope.account.account_id),
            force_destroy=scope.cluster.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        buckets.close(f"{name}-bucket", bucket, parent=self)
        # The only copy once the ledger has forgotten: a line that is overwritten can be read again.
        buckets.keep_versions(f"{name}-bucket", bucket, _RULES, parent=self)
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})


def bucket_name(prefix: str, account_id: str) -> str:
    return buckets.bucket_name(prefix, "incidents", account_id)


_RULES: list[aws.s3.BucketLifecycleConfigurationRuleArgsDict] = [
    {
        "id": "forget",
        "status": "Enabled",
        "filter": {"prefix": PREFIX},
        "expiration": {"days": KEPT_DAYS},
        "noncurrent_version_expiration": {"noncurrent_days": KEPT_DAYS},
    },
    {
        "id": "half-written",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "abort_incomplete_multipart_upload": {"days_after_initiation": ABANDONED_UPLOAD_DAYS},
    },
]


Late = Mapping[str, pulumi.Input[Any]]


def settings(definition: Definition, cluster: Operated, late: Late) -> pulumi.Output[Any]:
    """Return a function's settings; `late` are the fields that other resources say."""
    told = fields_of(definition, cluster, late)
    return pulumi.Output.all(**told).apply(lambda found: definition.settings(**found))


def fields_of(definition: Definition, cluster: Operated, late: Late) -> Late:
    """Return the fields of a function's settings, and no other."""
    known: Late = {
        **_shared_fields(cluster, definition.name),
        **definition.own_settings(cluster),
        **late,
    }
    return {
        each.name: known[each.name] for each in fields(definition.settings) if each.name in known
    }


def _shared_fields(cluster: Operated, function: str) -> dict[str, Any]:
    """Return the fields that a description says to several functions."""
    return {
        "prefix": cluster.prefix,
        "cluster": cluster.name,
        "region": cluster.region,
        "namespace": cluster.namespace,
        "kafka": cluster.identities.get(function),
        "policy": cluster.policy,
        "level": cluster.level,
        "gated": cluster.eviction_gate is not None,
        "instances": cluster.instances,
        "node_claims": cluster.node_claims,
        **({} if cluster.pool_labels is None else {"pool_labels": cluster.pool_labels}),
    }


def server_addresses(
    eks_cluster: str,
    endpoint: pulumi.Input[str],
    authority: pulumi.Input[str],
    bootstrap: pulumi.Input[str],
) -> Late:
    """Return what other layers say of the API server and of Kafka."""
    addresses = pulumi.Output.from_input(bootstrap).apply(
        lambda known: tuple(address.strip() for address in known.split(","))
    )
    return {"api": api_server(eks_cluster, endpoint, authority), "kafka_bootstrap": addresses}


def api_server(
    eks_cluster: str, endpoint: pulumi.Input[str], authority: pulumi.Input[str]
) -> pulumi.Output[ApiServer]:
    """Return the API server, whose authority EKS tells in base64."""
    return pulumi.Output.all(endpoint, authority).apply(
        lambda known: ApiServer(
            eks_cluster=eks_cluster, endpoint=known[0], ca_pem=base64.b64decode(known[1]).decode()
        )
    )


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The key that a function is told, and the item, which must be there first."""

    key: pulumi.Output[str]
    item: pulumi.Resource


def keep(
    name: str,
    role: str,
    table_name: pulumi.Input[str],
    settings: pulumi.Output[FunctionSettings],
    parent: pulumi.Resource,
) -> Kept:
    """Write the fields of settings that are marked for it into the ledger's table."""
    known = settings.apply(lambda found: _content(role, found))
    item = aws.dynamodb.TableItem(
        name,
        table_name=table_name,
        hash_key=KEY,
        item=known.apply(lambda made: made[1]),
        opts=pulumi.ResourceOptions(parent=parent, replace_on_changes=["item"]),
    )
    return Kept(key=known.apply(lambda made: made[0]), item=item)


def short(settings: FunctionSettings) -> str:
    """Return what of settings stands in the environment."""
    long, told = kept_fields(type(settings)), codec.document(settings)
    return codec.write({name: value for name, value in told.items() if name not in long})


def _content(role: str, settings: FunctionSettings) -> tuple[str, str]:
    told: dict[str, Any] = codec.document(settings)
    content = codec.write({name: told[name] for name in kept_fields(type(settings))})
    key = kept_key(role, content)
    return key, json.dumps({KEY: {"S": key}, CONTENT: {"S": content}}, sort_keys=True)


TYPE = "stillwater:infra:Function"
LOG_RETENTION_DAYS = 30


@dataclass(frozen=True, kw_only=True)
class FunctionPlacement:
    """A function's place in the VPC, for one that speaks to the API server and the brokers."""

    subnet_ids: Sequence[pulumi.Input[str]]
    security_group_ids: Sequence[pulumi.Input[str]]


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What all functions of a cluster have in common, and what is known late of their settings."""

    scope: Scope
    package: FunctionPackage
    late: Late
    # Of those with rights in the cluster.
    placement: FunctionPlacement | None = None


class LambdaFunction(pulumi.ComponentResource):
    """A function that may do what its statements say, and write its own log.

    With rights in the cluster it stands in the VPC; `kept` is what of its settings is then too long
    for the environment.
    """

    arn: pulumi.Output[str]
    name: pulumi.Output[str]
    role: aws.iam.Role
    # What must exist before anything may invoke the function.
    ready: aws.lambda_.Function

    def __init__(
        self,
        name: str,
        definition: Definition,
        shared: Shared,
        kept: Kept | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        scope, cluster = shared.scope, shared.scope.cluster
        inside = definition.kubernetes is not None
        placement, kept = (shared.placement, kept) if inside else (None, None)
        variables: dict[str, pulumi.Input[str]] = {
            SETTINGS: settings(definition, cluster, shared.late).apply(short)
        }
        if kept is not None:
            variables[KEPT] = kept.key
        function_name = naming.function(cluster.prefix, definition.name)
        child = pulumi.ResourceOptions(parent=self)
        # Made here, or Lambda makes one that keeps everything for ever.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/lambda/{function_name}",
            retention_in_days=LOG_RETENTION_DAYS,
            opts=child,
        )
        role = aws.iam.Role(
            f"{name}-role",
            name=function_name,
            assume_role_policy=iam.trust("lambda.amazonaws.com", self),
            opts=child,
        )
        rights = [*definition.may(scope), *_own_statements(function_name, scope, placement, logs)]
        permission = iam.allow(f"{name}-policy", role, rights, self)
        first = [permission, logs, *([] if kept is None else [kept.item])]
        function = aws.lambda_.Function(
            f"{name}-function",
            name=function_name,
            description=definition.description,
            runtime=LAMBDA_RUNTIME,
            architectures=[LAMBDA_ARCHITECTURE],
            handler=f"handlers.{definition.name}.handler",
            code=pulumi.FileArchive(str(shared.package.path)),
            source_code_hash=shared.package.source_code_hash,
            role=role.arn,
            timeout=definition.timeout(cluster),
            memory_size=cluster.memory_mib,
            reserved_concurrent_executions=definition.reserved_concurrency(cluster),
            environment=aws.lambda_.FunctionEnvironmentArgs(variables=variables),
            vpc_config=None
            if placement is None
            else {
                "subnet_ids": list(placement.subnet_ids),
                "security_group_ids": list(placement.security_group_ids),
            },
            # Lambda checks its right to make network interfaces when it creates the function.
            opts=pulumi.ResourceOptions(parent=self, depends_on=first),
        )
        self.arn, self.name, self.role = function.arn, function.name, role
        self.ready = function
        self.register_outputs({"arn": self.arn, "name": self.name})


def feed(
    name: str,
    definition: Definition,
    queue_arn: pulumi.Input[str],
    function: LambdaFunction,
    parent: pulumi.Resource,
) -> None:
    """Have a queue wake a function, as its definition says."""
    if definition.reads is None:
        return
    aws.lambda_.EventSourceMapping(
        f"{name}-source",
        event_source_arn=queue_arn,
        function_name=function.name,
        batch_size=definition.reads.batch,
        # One bad message must not bring the good ones of its batch back.
        function_response_types=["ReportBatchItemFailures"],
        scaling_config={"maximum_concurrency": definition.reads.at_once},
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _own_statements(
    function_name: str,
    scope: Scope,
    placement: FunctionPlacement | None,
    logs: aws.cloudwatch.LogGroup,
) -> list[iam.Statement]:
    statements = [
        iam.Statement(
            sid="WriteItsLog",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            # A log group's streams.
            resources=[logs.arn.apply(lambda arn: f"{arn}:*")],
        )
    ]
    if placement is not None:
        statements += _network_statements(scope.account, placement)
        arn = scope.account.arn("lambda", f"function:{function_name}")
        statements.append(_only_lambda_itself(arn, statements[1:]))
    return statements


def _only_lambda_itself(function_arn: str, rights: Sequence[iam.Statement]) -> iam.Statement:
    """Return the denial to the function's own code of what Lambda needs its role for.

    Lambda names the function in requests of its code, and not in its own (Lambda's developer
    guide, "Giving Lambda functions access to resources in an Amazon VPC").
    """
    return iam.Statement(
        sid="OnlyLambdaItself",
        effect="Deny",
        actions=[action for right in rights for action in right.actions],
        # A denial, so that all is meant.
        resources=iam.ANY_RESOURCE,
        conditions={"ArnEquals": {"lambda:SourceFunctionArn": function_arn}},
    )


def _network_statements(account: iam.Account, placement: FunctionPlacement) -> list[iam.Statement]:
    interfaces = account.arn("ec2", "network-interface/*")
    # Lambda refuses a role that may delete interfaces alone: it asks for every kind of resource
    # (terraform-provider-aws#20698).
    anything = account.arn("ec2", "*/*")
    places = [
        pulumi.Output.from_input(subnet).apply(lambda id_: account.arn("ec2", f"subnet/{id_}"))
        for subnet in placement.subnet_ids
    ]
    groups = [
        pulumi.Output.from_input(group).apply(
            lambda id_: account.arn("ec2", f"security-group/{id_}")
        )
        for group in placement.security_group_ids
    ]
    return [
        iam.Statement(
            sid="JoinItsSubnets",
            actions=["ec2:CreateNetworkInterface"],
            resources=[interfaces, *groups, *places],
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
