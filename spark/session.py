"""Opens a small local Spark session: quiet, on loopback, in UTC, and gone when its work is done.

Jobs and transforms never import a local session's settings (spark.java): a cluster brings its own,
so that the same wheel runs under spark-submit (spark.entry).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark import java
from spark.java import LOCAL_CORES, Java


@contextmanager
def local_session(
    cores: int = LOCAL_CORES, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield the active session, or a local one that ends, with its JVM, when the block does.

    `settings` stand beside and before the session's own: an Iceberg catalog and its jar.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with java.started(settings) as started, _session_of(started, cores) as session:
        yield session


@contextmanager
def _session_of(started: Java, cores: int) -> Iterator[SparkSession]:
    """Yield a session of a Java that is starting; the Java itself goes on."""
    gateway = None
    with _without_tracebacks():
        try:
            gateway, context = _connected(started, cores)
            yield SparkSession(context)
            context.stop()
            gateway.shutdown()
        except Exception as error:
            # Whatever the first call to a Java that is gone raised, this is why.
            ended = started.ended() if gateway is not None else None
            if ended is None:
                raise
            raise ended from error
        finally:
            # pyspark remembers the gateway of its first context and offers no way to forget it.
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def _connected(started: Java, cores: int) -> tuple[JavaGateway, SparkContext]:
    """Return PySpark's own gateway to a Java that listens, and a context in it."""
    port, secret = started.connection()
    environment = {
        # What PySpark takes for a Java that somebody else has started.
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
        "PYSPARK_PYTHON": sys.executable,
    }
    with _set(environment), _own_interrupt_handler():
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call] # pyspark
            gateway.proc = started.process
            conf = SparkConf(loadDefaults=False, _jvm=gateway.jvm)
            conf.setMaster(f"local[{cores}]").setAppName("stillwater")
            for key, value in started.settings.items():
                conf.set(key, value)
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise started.not_started(error) from error
    context.setLogLevel("ERROR")
    return gateway, context


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
