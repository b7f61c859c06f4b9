"""Decides which bills need Spark, and opens a small local session of it.

That is quiet, on loopback, in UTC, and gone when its work is done.

Jobs and transforms never import a local session's settings: a cluster brings its own, so that the
same wheel runs under spark-submit (spark.entry), which takes the conventions alone from here.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from core.ground.errors import MissingPrerequisite, StillwaterError, passed_on

LOCAL_CORES = 2
LOOPBACK = "127.0.0.1"
EXIT_SECONDS = 10
MEMORY = "spark.driver.memory"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# What the jobs rely on wherever they run; a local session has them from the start.
CONVENTIONS = {
    "spark.sql.session.timeZone": "UTC",
    # Java's own INT96 timestamps are read as local time by other engines.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A number too large for its type is an error, never another number.
    "spark.sql.ansi.enabled": "true",
}
# Measured on two cores: with two partitions adaptive execution plans nothing better, and the
# parallel collector and the first compiler alone (C1) cost a single run least.
SETTINGS = {
    **CONVENTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A cluster's Hadoop settings, if the user has any, must not send local paths to HDFS.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    MEMORY: "1g",
    JAVA_OPTIONS: "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": str(LOCAL_CORES),
    "spark.sql.adaptive.enabled": "false",
    # What went to disk by Java's serializer stays in memory, once it is read back, until this.
    "spark.serializer.objectStreamReset": "1",
}

# Starts a session, or returns the one that there is.
Start = Callable[[], SparkSession]
# Returns the session that adds up a bill of about so many lines, or None for this process.
Engine = Callable[[int], SparkSession | None]
# Of fewer lines this process has added a bill up before Spark would have started.
LINES_HERE = 20_000_000


def engine_of(start: Start) -> Engine:
    """Return the engine that starts Spark for bills that are too large for this process."""
    return lambda lines: None if lines < LINES_HERE else start()


@contextmanager
def local_session(
    cores: int = LOCAL_CORES, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield the active session, or a local one that ends, with its Java, when the block does.

    `settings` stand beside and before the session's own: an Iceberg catalog and its jar. Raises
    MissingPrerequisite without a Java, StillwaterError where it does not start or ends too early.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise MissingPrerequisite(
            "Java 17 or newer is needed to run Spark and no java is on the PATH; install a JDK "
            "(for example: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )
    prefix = "stillwater-spark-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as scratch,
        _without_tracebacks(),
        _context(_conf(cores, Path(scratch), settings or {}), Path(scratch)) as context,
    ):
        yield SparkSession(context)


def _conf(cores: int, scratch: Path, settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf().setMaster(f"local[{cores}]").setAppName("stillwater")
    conf.set("spark.local.dir", str(scratch))
    conf.set("spark.sql.warehouse.dir", (scratch / "warehouse").as_uri())
    for key, value in {**SETTINGS, **settings}.items():
        conf.set(key, value)
    return conf


@contextmanager
def _context(conf: SparkConf, scratch: Path) -> Iterator[SparkContext]:
    gateway, context = _start(conf, scratch / "java.log")
    try:
        yield context
        context.stop()
        gateway.shutdown()
    except Exception as error:
        # Whatever the first call to a Java that is gone raised, this is why.
        code = gateway.proc.poll()
        if code is None:
            raise
        raise StillwaterError(
            f"Spark's Java ended in the middle of its work (exit code {code}), as it does when "
            f"{conf.get(MEMORY)} of memory are too little for what was read. "
            f"Read fewer months at a time (--month), or use a cluster (--on emr)."
        ) from error
    finally:
        # After Ctrl-C in the middle of a call nothing polite gets through to Java any more.
        _end(gateway)


def _start(conf: SparkConf, log: Path) -> tuple[JavaGateway, SparkContext]:
    environment = {
        # Whatever other Spark the user's environment names, this package's own is meant.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
        "PYSPARK_PYTHON": sys.executable,
    }
    gateway = None
    with log.open("wb") as sink, _set(environment), _own_interrupt_handler():
        try:
            # Java's start-up warnings go to a file that is shown only when the start fails.
            gateway = launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call] # pyspark
            context = SparkContext(conf=conf, gateway=gateway)
        except BaseException as error:
            if gateway is not None:
                _end(gateway)
            if not isinstance(error, Exception):
                raise
            ours = (
                "Spark did not start. See that `java -version` says 17 or newer and that "
                f"{conf.get(MEMORY)} of memory are free, and run it again."
            )
            last = "; ".join(log.read_text(errors="replace").splitlines()[-2:])
            raise StillwaterError(passed_on(ours, last or error)) from error
    context.setLogLevel("ERROR")
    return gateway, context


def _end(gateway: JavaGateway) -> None:
    """End Java, which pyspark would keep, with its memory, until Python itself ends."""
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    # pyspark remembers the gateway of its first context and offers no way to forget it.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep Ctrl-C what it was: pyspark's handler calls the JVM in the middle of another call."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Drop the tracebacks that py4j and pyspark log; what they cannot do, they also raise."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return "while sending command" not in record.getMessage()

    root = logging.getLogger()
    # The second writes of each refused query all of Java's stack, 17,000 characters.
    loggers = [logging.getLogger(name) for name in ("py4j", "DataFrameQueryContextLogger")]
    levels = [each.level for each in loggers]
    root.addFilter(is_wanted)
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
        root.removeFilter(is_wanted)
