"""How the rest of the twin starts its AWS and talks to it."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import boto3

from local.place import PLACE_VARIABLE, Place
from local.processes import Child, Processes

REGION = "us-east-1"
CREDENTIALS_FILE = "aws-credentials.json"
START_LIMIT_SECONDS = 60.0


def start(
    processes: Processes, place: Place, *, environment: Mapping[str, str] | None = None
) -> Child:
    """Start the twin's AWS and wait until it answers."""
    child = processes.start(
        "moto",
        [sys.executable, "-m", "local.aws.server"],
        environment={
            **os.environ,
            **(environment or {}),
            PLACE_VARIABLE: str(place.directory),
        },
        directory=Path(__file__).resolve().parents[2],
    )
    processes.wait_until(
        child, lambda: answers(place), within_seconds=START_LIMIT_SECONDS, what="it answers"
    )
    return child


def answers(place: Place) -> bool:
    """Say whether the twin's AWS answers."""
    connection = http.client.HTTPConnection(place.host("moto"), place.port("moto"), timeout=2)
    try:
        connection.request("GET", "/moto-api/")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def variables(place: Place) -> dict[str, str]:
    """Return the environment with which any AWS client finds the twin, as its first user."""
    stored = json.loads(place.path(CREDENTIALS_FILE).read_text())
    return {
        "AWS_ACCESS_KEY_ID": stored["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": stored["secret_access_key"],
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": place.url("moto"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def session(place: Place) -> boto3.Session:
    """Return a session of the first user; its clients need endpoint_url=place.url("moto")."""
    found = variables(place)
    return boto3.Session(
        aws_access_key_id=found["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=found["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
    )
