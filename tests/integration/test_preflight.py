"""A preflight of the twin's account: what its AWS serves is asked, and sabotage is found."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from rich.console import Console

from cli.preflight import command
from cli.target import Target
from core.checks.finding import NOT_READ, Weight
from core.cluster import parse
from local import environment
from local.commands.layers import TwinLayers
from local.demo import spec as demo_spec
from local.place import PLACE_VARIABLE
from local.twin import Twin

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).resolve().parents[2]
# Its names are nobody else's on this twin.
ENVIRONMENT, SECRET = "asked", "asked/slack"
ROLE = f"{ENVIRONMENT}-{demo_spec.CLUSTER}-tick"
BUCKET = f"{ENVIRONMENT}-{demo_spec.CLUSTER}-billing-{environment.ACCOUNT}"


def test_the_twins_account_is_asked_from_another_process(twin: Twin, layers: TwinLayers) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "preflight", "local", "--json"],
        cwd=REPOSITORY,
        env={**os.environ, PLACE_VARIABLE: str(twin.place.directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = json.loads(done.stdout)
    # moto serves no quotas, no add-on versions and no simulation: said, and never taken for good.
    assert (done.returncode, said["exit_code"]) == (NOT_READ, NOT_READ), done.stderr
    assert (said["account"], said["cluster"]) == (environment.ACCOUNT, layers_prefix())
    assert {f["weight"] for f in said["findings"]} == {Weight.UNKNOWN}, said["findings"]
    assert all(f["evidence"] and f["remedy"] for f in said["findings"])


def layers_prefix() -> str:
    return f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}"


@contextlib.contextmanager
def sabotaged(twin: Twin) -> Iterator[tuple[str, str]]:
    """Take the names of the environment, and yield a VPC and its subnet that is nearly full."""
    iam, s3, secrets = twin.aws("iam"), twin.aws("s3"), twin.aws("secretsmanager")
    ec2 = twin.aws("ec2")
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    s3.create_bucket(Bucket=BUCKET)
    secrets.create_secret(Name=SECRET, SecretString="xoxb-1")
    secrets.delete_secret(SecretId=SECRET)
    block = f"10.{twin.place.number}.160.0/28"
    vpc = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=demo_spec.ZONES[0])
    subnet = made["Subnet"]["SubnetId"]
    try:
        yield vpc, subnet
    finally:
        ec2.delete_subnet(SubnetId=subnet)
        ec2.delete_vpc(VpcId=vpc)
        secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)
        s3.delete_bucket(Bucket=BUCKET)
        iam.delete_role(RoleName=ROLE)


def refused(twin: Twin, described: dict[str, Any]) -> list[str]:
    variables = environment.with_credentials(twin.place)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    target = Target(parse(described), session, variables["AWS_ENDPOINT_URL"])
    done = command.examine(target, Console(quiet=True))
    return [each.line for each in done.refused]


def test_a_sabotaged_twin_is_a_sentence_for_each_obstacle(twin: Twin) -> None:
    first, *others = demo_spec.ZONES
    described = demo_spec.spec(twin.place) | {"environment": ENVIRONMENT}
    described["slack"] = {**described["slack"], "secret_name": SECRET}
    described["availability_zones"] = [*demo_spec.ZONES, "us-east-1e"]
    with sabotaged(twin) as (vpc, subnet):
        letters = {zone: f"subnet-0123456789abcde{zone[-1]}f" for zone in (*others, "us-east-1e")}
        described["network"] = {
            "vpc_cidr": f"10.{twin.place.number}.160.0/20",
            "existing": {"vpc_id": vpc, "private_subnet_ids": {**letters}},
        }
        described["network"]["existing"]["private_subnet_ids"][first] = subnet
        found = "\n".join(refused(twin, described))
    for words in (
        "us-east-1e of account 123456789012 is use1-az3, where EKS places no control plane",
        f"{ROLE}: roles of these names are there already",
        f"{BUCKET}: buckets of these names are there already",
        f"secret {SECRET} is scheduled for deletion",
        f"subnet {subnet} has 11 free addresses",
        f"has no subnet subnet-0123456789abcde{demo_spec.ZONES[-1][-1]}f",
    ):
        assert words in found, found
