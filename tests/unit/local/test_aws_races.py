"""Promises that moto alone breaks under threads, with threads that switch as often as they can.

The server's WSGI application is called directly, without a socket. Without its lock one round in
ten has two winners here.
"""

import io
import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.aws import identity
from local.aws.server import Application
from local.iam.guard import Guard

WRITERS = 24
ROUNDS = 50
TARGET = "DynamoDB_20120810."


@pytest.fixture
def restless_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def call(application: Application, key: str, operation: str, body: dict[str, Any]) -> str:
    """Send one signed request and return its status."""
    content = json.dumps(body).encode()
    statuses: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "SERVER_NAME": "aws",
        "SERVER_PORT": "80",
        "HTTP_HOST": "dynamodb.us-east-1.amazonaws.com",
        "HTTP_X_AMZ_TARGET": TARGET + operation,
        "HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 "
        f"Credential={key}/20261120/us-east-1/dynamodb/aws4_request, Signature=x",
        "CONTENT_TYPE": "application/x-amz-json-1.0",
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.input": io.BytesIO(content),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for _ in application(environ, lambda status, *_: statuses.append(status)):
        pass
    return statuses[0]


@pytest.mark.usefixtures("restless_threads")
def test_of_24_conditional_writers_one_wins_every_time() -> None:
    application = Application(lambda *_: [], Guard(lambda *_, **__: None))
    key = identity.create_admin().access_key_id
    created = call(
        application,
        key,
        "CreateTable",
        {
            "TableName": "ledger",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    assert created.startswith("200")
    together = threading.Barrier(WRITERS)

    def write(item_key: str) -> bool:
        together.wait()
        item = {
            "TableName": "ledger",
            "Item": {"pk": {"S": item_key}},
            "ConditionExpression": "attribute_not_exists(pk)",
        }
        return call(application, key, "PutItem", item).startswith("200")

    with ThreadPoolExecutor(WRITERS) as pool:
        winners = [sum(pool.map(write, [f"k{number}"] * WRITERS)) for number in range(ROUNDS)]
    assert winners == [1] * ROUNDS
