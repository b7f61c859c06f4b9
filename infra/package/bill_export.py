"""`BillExport` for programs in any language: the account's bill, in a bucket of its own."""

import re
from typing import NotRequired, TypedDict

import pulumi

from core.cluster.limits import BUCKET, RESERVED_STARTS
from infra.analytics import bill_export
from infra.iam import Account
from infra.package import facts

TYPE = "stillwater:index:BillExport"
# S3 keeps some beginnings of a bucket's name for itself.
_OF_S3 = "|".join(start for start, what in RESERVED_STARTS.items() if what == BUCKET)
PREFIX = re.compile(rf"(?!{_OF_S3})[a-z0-9][a-z0-9-]{{0,39}}")


class BillExportArgs(TypedDict):
    prefix: str
    """What the names of all that is made begin with: lower-case letters, digits and `-`."""
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
    """What the export is called."""
    folder: pulumi.Output[str]
    """Where in the bucket its files are: what `stillwater report --bill` is given."""

    def __init__(
        self, name: str, args: BillExportArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        prefix = facts.text(args, "prefix", PREFIX, "shop-orders")
        split = facts.yes(args, "split_cost_allocation")
        ephemeral = facts.yes(args, "ephemeral")
        account = Account.current(pulumi.InvokeOptions(parent=self))
        made, policy = bill_export.bill_bucket(
            f"{name}-billing", prefix, account, ephemeral=ephemeral, parent=self
        )
        export = bill_export.BillExport(
            name,
            bill_export.BillExportArgs(
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
            "s3://", made.bucket, f"/{bill_export.PREFIX}/{export.name}"
        )
        self.register_outputs(
            {"bucket": self.bucket, "exportName": self.export_name, "folder": self.folder}
        )
