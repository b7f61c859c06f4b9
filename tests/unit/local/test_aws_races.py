"""Promises that moto alone breaks under threads, with threads that switch as often as they can.

The server's WSGI application is called directly, without a socket. Without its lock several rounds
have two winners here.
"""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.local.iam_account import Account

WRITERS = 24
ROUNDS = 50


@pytest.fixture
def restless_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_threads")
def test_of_24_conditional_writers_one_wins_every_time() -> None:
    dynamodb = Account().client("dynamodb")
    dynamodb.create_table(
        TableName="ledger",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    together = threading.Barrier(WRITERS)

    def write(item_key: str) -> bool:
        together.wait()
        try:
            dynamodb.put_item(
                TableName="ledger",
                Item={"pk": {"S": item_key}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        winners = [sum(pool.map(write, [f"k{number}"] * WRITERS)) for number in range(ROUNDS)]
    assert winners == [1] * ROUNDS
