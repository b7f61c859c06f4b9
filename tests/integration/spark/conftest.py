"""One Spark session for every test that needs one, since its JVM takes seconds; and a bucket."""

import sys
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

from local.spark import iceberg
from spark.session import CONVENTIONS

CATALOG = "here"
SETTINGS = {
    **CONVENTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Java written and compiled for each plan costs a test a third of its time, and a bill of ten
    # lines gains nothing by it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with an Iceberg catalog called `here`."""
    folder = tmp_path_factory.mktemp("spark")
    tables = iceberg.settings(iceberg.jar(), folder.as_uri(), CATALOG)
    settings = {**SETTINGS, **tables, "spark.local.dir": str(folder / "scratch")}
    with pytest.MonkeyPatch.context() as patched:
        # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        started = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        yield started
        started.stop()


@pytest.fixture
def bucket() -> Iterator[tuple[Any, dict[str, str]]]:
    """Moto's S3 with a bucket called `bills`, and the variables that lead a process to it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "testing")
    address = f"http://{host}:{port}"
    try:
        s3 = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        s3.create_bucket(Bucket="bills")
        own = {name.upper(): value for name, value in keys.items()}
        yield s3, {"AWS_ENDPOINT_URL": address, "AWS_REGION": "us-east-1", **own}
    finally:
        server.stop()
