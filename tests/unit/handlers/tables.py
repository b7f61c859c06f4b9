"""The ledger's table, for tests of what really speaks to DynamoDB: in moto, and on the twin."""

from typing import Any

import boto3

REGION = "us-east-1"
TABLE = "local-orders-incidents"


def make_table(dynamodb: Any = None, name: str = TABLE) -> None:
    """Make a table of the keys and the index that infra.functions.function gives it."""
    (dynamodb or boto3.client("dynamodb", region_name=REGION)).create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "open", "AttributeType": "S"},
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


def stored_items(key: str) -> list[dict[str, object]]:
    """Return the items whose key starts with `key`."""
    items = boto3.client("dynamodb", region_name=REGION).scan(TableName=TABLE)["Items"]
    return [dict(i) for i in items if i["pk"]["S"].startswith(key)]
