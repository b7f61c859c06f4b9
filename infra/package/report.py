"""`BillExport` and `Report` for programs in any language: the bill, and what Kafka costs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from core.cluster import tagging
from core.cluster.adopted_names import CALLED
from core.cluster.limits import BUCKET, RESERVED_STARTS
from core.cluster.report_facts import RESYNC_WITHIN_SECONDS, RETENTION_SECONDS
from core.ground.errors import InvalidInput
from core.settings.facts import Facts, Pool, Volume, to_json
from core.volumes.sizing import (
    LARGEST_GIB,
    LEAST_IOPS,
    LEAST_MIB_PER_S,
    MOST_IOPS,
    MOST_MIB_PER_S,
    SMALLEST_GIB,
)
from infra.analytics import report_job, workspace
from infra.analytics.report_job import application
from infra.iam import Account
from infra.package import broker_nodes
from infra.package.broker_nodes import INSTANCE_TYPE, POOL

EXPORT_TYPE = "stillwater:index:BillExport"
# S3 keeps some beginnings of a bucket's name for itself.
_OF_S3 = "|".join(start for start, what in RESERVED_STARTS.items() if what == BUCKET)
PREFIX = re.compile(rf"(?!{_OF_S3})[a-z0-9][a-z0-9-]{{0,39}}")


class BillExportArgs(TypedDict):
    prefix: str
    """The prefix of all names: lower-case letters, digits and `-`."""
    split_cost_allocation: NotRequired[bool]
    """Two lines more for every pod of the account and hour, for Kafkas that share machines.
    The account must have switched split cost allocation on. Off by default."""
    ephemeral: NotRequired[bool]
    """Whether the bills go with the bucket when the component is taken away. Off by default."""


class BillExport(pulumi.ComponentResource):
    """The account's cost and usage by the hour, with resources, as Parquet (CUR 2.0), in a private
    and versioned bucket of its own. AWS rewrites the running month several times a day."""

    bucket: pulumi.Output[str]
    """The bucket's name."""
    export_name: pulumi.Output[str]
    """The export's name."""
    folder: pulumi.Output[str]
    """Where in the bucket its files are: what `stillwater report --bill` is given."""

    def __init__(
        self, name: str, args: BillExportArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(EXPORT_TYPE, name, None, opts)
        prefix = broker_nodes.text(args, "prefix", PREFIX, "shop-orders")
        split = broker_nodes.yes(args, "split_cost_allocation")
        ephemeral = broker_nodes.yes(args, "ephemeral")
        account = Account.current(pulumi.InvokeOptions(parent=self))
        made, policy = workspace.bill_bucket(
            f"{name}-billing", prefix, account, ephemeral=ephemeral, parent=self
        )
        export = workspace.BillExport(
            name,
            workspace.BillExportArgs(
                prefix=prefix,
                account=account,
                bucket=made.bucket,
                bucket_region=account.region,
                policy=policy,
                split=split,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.bucket = made.bucket
        self.export_name = pulumi.Output.from_input(export.name)
        self.folder = pulumi.Output.concat(
            "s3://", made.bucket, f"/{workspace.PREFIX}/{export.name}"
        )
        self.register_outputs(
            {"bucket": self.bucket, "exportName": self.export_name, "folder": self.folder}
        )


REPORT_TYPE = "stillwater:index:Report"
# s3://BUCKET/FOLDER, where an export of cost and usage is delivered.
FOLDER = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]+)/(?P<path>[^/\s][^\s]*[^/\s])/?")
MOST_ZONES, MOST_NODES, MOST_REPLICAS = 6, 1000, 100
LONGEST_RETENTION_HOURS = 24 * 3650


class ReportVolume(TypedDict):
    size_gib: int
    """Its size in GiB."""
    iops: NotRequired[int]
    """Its provisioned IOPS: 3000 by default."""
    throughput_mib_per_s: NotRequired[int]
    """Its provisioned throughput in MiB a second: 125 by default."""


class ReportPool(TypedDict):
    instance_type: str
    """The type of every machine, such as r7g.xlarge."""
    nodes: int
    """How many nodes of Kafka it has, in all zones."""
    volumes: Sequence[ReportVolume]
    """The gp3 volumes of each node."""
    controllers: NotRequired[bool]
    """Whether its nodes are controllers alone. Off by default."""


class ReportArgs(TypedDict):
    cluster: str
    """What names begin with, and the value of the tag that means this Kafka on the bill."""
    bill: pulumi.Input[str]
    """Where the export of cost and usage is delivered, `s3://BUCKET/FOLDER`: the `folder` of
    `BillExport`. Tables, code and logs stand in the same bucket."""
    zones: int
    """How many availability zones the brokers stand in."""
    pools: Mapping[str, ReportPool]
    """Kafka's nodes by their pool: a KafkaNodePool's name without its zone's letter."""
    replication_factor: NotRequired[int]
    """The factor of most topics: 3 by default."""
    retention_hours: NotRequired[int]
    """How long a broker keeps records on its own disk: 168 by default."""
    follower_fetching: NotRequired[bool]
    """Whether brokers let consumers read from a replica in their own zone. Off by default."""
    incidents_bucket: NotRequired[pulumi.Input[str]]
    """Where closed incidents are filed: the `incidentsBucket` of `Operations`. Without it reports
    do not say what rotations cost."""
    cluster_tag: NotRequired[str]
    """The tag that means this Kafka on the bill, where it is not `stillwater:cluster`."""
    pool_tag: NotRequired[str]
    """The tag that means its pools there, where it is not `stillwater:pool`."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of each run, which is billed apart."""


class Report(pulumi.ComponentResource):
    """The report of Kafka's cost, made every morning by a job on EMR Serverless from the account's
    bill. It has the application, which costs nothing when idle, the job's role and code, a database
    in Glue and the schedule."""

    application_id: pulumi.Output[str]
    """The application that runs it."""
    job: pulumi.Output[str]
    """What starts it once, as JSON: the request StartJobRun."""

    def __init__(
        self, name: str, args: ReportArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(REPORT_TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        account = Account.current(pulumi.InvokeOptions(parent=self))
        cluster = broker_nodes.text(args, "cluster", CALLED, "shop-orders")
        described = _facts_of(args, cluster, account)
        cluster_tag, pool_tag = broker_nodes.bill_tags(args)
        tags = broker_nodes.tags(args, "tags")
        if problems := [*tagging.narrow_problems(tags, snapshots=False)]:
            raise InvalidInput(problems)
        if isinstance(args["bill"], str):
            # At once, and not while resources are made.
            _folder(args["bill"])
        delivered = pulumi.Output.from_input(args["bill"]).apply(_folder)
        bucket = delivered.apply(lambda found: found[0])
        made = application(f"{name}-spark", cluster, child)
        job = report_job.ReportJob(
            name,
            report_job.ReportJobArgs(
                prefix=cluster,
                cluster=cluster,
                account=account,
                bucket=bucket,
                bucket_arn=pulumi.Output.concat(f"arn:{account.partition}:s3:::", bucket),
                application_arn=made.arn,
                application_id=made.id,
                bill=delivered.apply(lambda found: found[1]),
                facts=to_json(described),
                incidents_bucket=args.get("incidents_bucket"),
                tags=tags,
                bill_cluster_tag=cluster_tag,
                bill_pool_tag=pool_tag,
            ),
            opts=child,
        )
        self.application_id, self.job = made.id, job.job
        self.register_outputs({"applicationId": self.application_id, "job": self.job})


def _folder(written: str) -> tuple[str, str]:
    found = FOLDER.fullmatch(written)
    if found is None:
        raise InvalidInput([f"bill is {written!r}; it must be like s3://shop-billing/export/shop."])
    return found["bucket"], found["path"]


def _facts_of(args: ReportArgs, cluster: str, account: Account) -> Facts:
    pools = broker_nodes.plain_value(args["pools"], "pools")
    if not isinstance(pools, Mapping) or not pools:
        raise InvalidInput([f"pools is {pools!r}; it must have at least one entry."])
    hours = broker_nodes.whole_number(
        args, "retention_hours", 1, LONGEST_RETENTION_HOURS, RETENTION_SECONDS // 3600
    )
    return Facts(
        cluster=cluster,
        archive_name=cluster,
        region=account.region,
        zones=broker_nodes.whole_number(args, "zones", 1, MOST_ZONES),
        replication_factor=broker_nodes.whole_number(
            args, "replication_factor", 1, MOST_REPLICAS, 3
        ),
        retention_seconds=hours * 3600,
        resync_within_seconds=RESYNC_WITHIN_SECONDS,
        pools=tuple(_pool(name, pool) for name, pool in sorted(pools.items())),
        follower_fetching=broker_nodes.yes(args, "follower_fetching"),
    )


def _pool(name: str, given: Mapping[str, Any]) -> Pool:
    if POOL.fullmatch(name) is None:
        raise InvalidInput([f"pools has the key {name!r}; keys are names of pools like broker."])
    try:
        return _pool_of(name, given)
    except InvalidInput as error:
        raise InvalidInput([f"pools.{name}: {each}" for each in error.problems]) from None


def _pool_of(name: str, given: Mapping[str, Any]) -> Pool:
    return Pool(
        name=name,
        is_broker=not broker_nodes.yes(given, "controllers"),
        instance_type=broker_nodes.text(given, "instance_type", INSTANCE_TYPE, "r7g.xlarge"),
        nodes=broker_nodes.whole_number(given, "nodes", 1, MOST_NODES),
        volumes=tuple(
            Volume(
                broker_nodes.whole_number(each, "size_gib", SMALLEST_GIB, LARGEST_GIB),
                broker_nodes.whole_number(each, "iops", LEAST_IOPS, MOST_IOPS, LEAST_IOPS),
                broker_nodes.whole_number(
                    each, "throughput_mib_per_s", LEAST_MIB_PER_S, MOST_MIB_PER_S, LEAST_MIB_PER_S
                ),
            )
            for each in broker_nodes.plain_value(given["volumes"], "volumes")
        ),
    )
