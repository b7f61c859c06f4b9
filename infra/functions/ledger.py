"""The ledger: one DynamoDB table with every incident, lease and announcement.

Everything the handlers know lives here, written under conditions, so that any of them may die at
any line. Items end themselves by `expires_at`; the sparse index `open` holds unfinished incidents.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core import naming

TYPE = "stillwater:infra:Ledger"
KEY = "pk"
EXPIRES_AT = "expires_at"
OPEN_INDEX = "open"


@dataclass(frozen=True, kw_only=True)
class LedgerArgs:
    prefix: str
    # An environment that may be destroyed.
    ephemeral: bool


class LedgerTable(pulumi.ComponentResource):
    """On-demand, restorable to any second of the last 35 days."""

    table_name: pulumi.Output[str]

    def __init__(
        self, name: str, args: LedgerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        table = aws.dynamodb.Table(
            f"{name}-table",
            name=naming.ledger_table(args.prefix),
            billing_mode="PAY_PER_REQUEST",
            hash_key=KEY,
            attributes=[
                aws.dynamodb.TableAttributeArgs(name=KEY, type="S"),
                aws.dynamodb.TableAttributeArgs(name=OPEN_INDEX, type="S"),
            ],
            global_secondary_indexes=[
                aws.dynamodb.TableGlobalSecondaryIndexArgs(
                    name=OPEN_INDEX,
                    key_schemas=[
                        aws.dynamodb.TableGlobalSecondaryIndexKeySchemaArgs(
                            attribute_name=OPEN_INDEX, key_type="HASH"
                        )
                    ],
                    projection_type="ALL",
                )
            ],
            ttl=aws.dynamodb.TableTtlArgs(attribute_name=EXPIRES_AT, enabled=True),
            point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=True),
            # With it go the hooks that wait, the lease and every drain that has not ended.
            deletion_protection_enabled=not args.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.table_name = table.name
        self.register_outputs({"table_name": self.table_name})
