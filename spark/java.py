"""Starts Spark's Java by itself, without PySpark's scripts, and ends it.

PySpark starts Java by two shell scripts and a Java of their own that writes the command: seconds in
which nothing else happens. Here the command is written by us.
The settings of a local session stand here as well, since they are Java's system properties.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from core.ground.errors import MissingPrerequisite, StillwaterError, passed_on

LOCAL_CORES = 2
LOOPBACK = "127.0.0.1"
EXIT_SECONDS = 10
START_SECONDS = 120
POLL_SECONDS = 0.02
JARS = "spark.jars"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
MEMORY = "spark.driver.memory"
SERVER = "org.apache.spark.api.python.PythonGatewayServer"

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
# What Spark opens to itself in a Java of 17 or newer; a test holds it against Spark's own launcher.
_OPENED = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net")),
    *(f"java.base/java.{name}" for name in ("nio", "util", "util.concurrent")),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref"),
    *(f"java.base/sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Dderby.connection.requireAuthentication=false",
)


@dataclass(frozen=True)
class Java:
    """A Java that is starting, the settings it has, and the folder that ends with it."""

    process: subprocess.Popen[bytes]
    settings: Mapping[str, str]
    scratch: Path

    def connection(self) -> tuple[int, str]:
        """Wait until Java listens, and return its port and secret.

        Raises StillwaterError where it ends before, or does not listen in START_SECONDS.
        """
        ends = time.monotonic() + START_SECONDS
        while not (told := _told(self.scratch)).exists():
            if self.process.poll() is not None or time.monotonic() > ends:
                raise self.not_started()
            time.sleep(POLL_SECONDS)
        data = told.read_bytes()
        port, length = struct.unpack(">ii", data[:8])
        return port, data[8 : 8 + length].decode()

    def not_started(self, error: Exception | None = None) -> StillwaterError:
        """Return what is said where Spark did not start: the remedy, and Java's own last words."""
        ours = (
            "Spark did not start. See that `java -version` says 17 or newer and that "
            f"{self.settings[MEMORY]} of memory are free, and run it again."
        )
        last = "; ".join(_log(self.scratch).read_text(errors="replace").splitlines()[-2:])
        return StillwaterError(passed_on(ours, last or error or "Java said nothing"))

    def ended(self) -> StillwaterError | None:
        """Return what is said of a Java that is gone in the middle of its work, or None."""
        code = self.process.poll()
        if code is None:
            return None
        return StillwaterError(
            f"Spark's Java ended in the middle of its work (exit code {code}), as it does when "
            f"{self.settings[MEMORY]} of memory are too little for what was read. "
            f"Read fewer months at a time (--month), or use a cluster (--on emr)."
        )


@contextmanager
def started(settings: Mapping[str, str] | None = None) -> Iterator[Java]:
    """Start Java with a local session's settings; it is gone when the block ends.

    `settings` stand before the session's own. Raises MissingPrerequisite without a Java.
    """
    java = program()
    prefix = "stillwater-spark-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        own = {
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        }
        chosen = {**SETTINGS, **own, **(settings or {})}
        environment = {
            **os.environ,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_told(scratch)),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LOCAL_IP": LOOPBACK,
            # Whatever other Spark the user's environment names, this package's own is meant.
            "SPARK_HOME": str(_spark_home()),
        }
        # Java's start-up warnings go to a file that is shown only when the start fails.
        with _log(scratch).open("wb") as log:
            process = subprocess.Popen(
                command(java, chosen),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                # Ctrl-C is for Python, which ends Java in its own time.
                preexec_fn=_ignore_interrupts,  # noqa: PLW1509 - pyspark does the same
            )
        try:
            yield Java(process, chosen, scratch)
        finally:
            _end(process)


def command(java: str, settings: Mapping[str, str]) -> list[str]:
    """Return the command that starts the server PySpark talks to."""
    # spark-submit would add a session's jars to the classes that the driver finds.
    classes = [f"{_spark_home()}/jars/*", *filter(None, settings.get(JARS, "").split(","))]
    known = [f"-D{name}={value}" for name, value in settings.items() if name != JAVA_OPTIONS]
    return [
        *(java, "-cp", os.pathsep.join(classes), f"-Xmx{settings[MEMORY]}"),
        *(*OPTIONS, *settings[JAVA_OPTIONS].split(), *known, SERVER),
    ]


def program() -> str:
    """Return the Java to run; raise MissingPrerequisite where there is none."""
    root = os.environ.get("JAVA_HOME")
    found = str(Path(root) / "bin" / "java") if root else shutil.which("java")
    if found is None or not os.access(found, os.X_OK):
        raise MissingPrerequisite(
            "Java 17 or newer is needed to run Spark and no java is on the PATH; install a JDK "
            "(for example: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
        )
    return found


def _spark_home() -> Path:
    """Return the folder of the PySpark package, which it takes a second to import."""
    found = util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    return Path(found.origin).parent


def _told(scratch: Path) -> Path:
    return scratch / "connection"


def _log(scratch: Path) -> Path:
    return scratch / "java.log"


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End Java, which ends by itself when nobody holds its standard input."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
