"""The ledger: one DynamoDB table with every incident, lease and announcement.

Everything the handlers know lives here, written under conditions, so that any of them may die at
any line. Items end themselves by `expires_at`; the sparse index `open` holds unfinished incidents.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster.operated import Operated

TYPE = "stillwater:infra:Ledger"
KEY = "pk"
EXPIRES_AT = "expires_at"
OPEN_INDEX = "open"


class LedgerTable(pulumi.ComponentResource):
    """On-demand, restorable to any second of the last 35 days."""

    table_name: pulumi.Output[str]

    def __init__(
        self, name: str, cluster: Operated, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
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
