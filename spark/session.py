"""Starts a small local Spark session: quiet, on loopback, in UTC, and gone when its work is done.

Jobs and transforms never import this module: they are handed a session, so that the same wheel
runs under spark-submit on a cluster.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from core.errors import MissingPrerequisite, StillwaterError

LOCAL_CORES = 2
LOOPBACK = "127.0.0.1"
JVM_EXIT_SECONDS = 10

# Measured on two cores: AQE cannot mend 200 shuffle partitions on a small bill (3.5 times slower),
# the parallel collector costs less CPU than G1, and the first compiler alone (C1) makes the best
# one-shot run, which is what a command is.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A cluster's Hadoop settings, if the user has any, must not send local paths to HDFS.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(LOCAL_CORES),
    # Java's own INT96 timestamps are read as local time by other engines.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@contextmanager
def local_session(cores: int = LOCAL_CORES) -> Iterator[SparkSession]:
    """Yield the active session, or a local one that ends, with its JVM, when the block does."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="stillwater-spark-") as scratch:
        context, gateway = _start(cores, Path(scratch))
        session = SparkSession(context)
        try:
            yield session
        finally:
            session.stop()
            _end(gateway)


def _start(cores: int, scratch: Path) -> tuple[SparkContext, JavaGateway]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise MissingPrerequisite(
            "Java 17 or newer is needed to run Spark and no java is on the PATH; install a JDK "
            "(for example: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )
    conf = SparkConf().setMaster(f"local[{cores}]").setAppName("stillwater")
    conf.set("spark.local.dir", str(scratch))
    conf.set("spark.sql.warehouse.dir", (scratch / "warehouse").as_uri())
    for key, value in SETTINGS.items():
        conf.set(key, value)
    log = scratch / "java.log"
    with log.open("wb") as sink, _environment():
        try:
            # Java's start-up warnings go to a file that is shown only when the start fails.
            gateway = launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call] # pyspark
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise StillwaterError(f"Spark did not start: {error}\n{tail}") from error
    context.setLogLevel("ERROR")
    return context, gateway


@contextmanager
def _environment() -> Iterator[None]:
    """Start Spark as this package's own, whatever other Spark the user's environment names."""
    ours = {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
        "PYSPARK_PYTHON": sys.executable,
    }
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _end(gateway: JavaGateway) -> None:
    """End the JVM, which pyspark would keep, with its memory, until Python itself ends."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(JVM_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    # pyspark remembers the gateway of its first context and offers no way to forget it.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
