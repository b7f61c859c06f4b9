"""Records Kafka's classes once, so that every later JVM maps them instead of parsing jars.

Six nodes start at once on a laptop's few cores, and class loading is most of it: with the archive a
node is up in about half the time. It is an optimisation and never a condition: without an archive,
or with one of another Java, the JVM starts as it always did.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from core.ground.errors import StillwaterError
from local.kafka.container import CLUSTER_ID, METADATA_VERSION, POD_ADDRESS, SERVER_CONFIG
from local.place import claim_place
from local.processes import REPOSITORY, Processes, listens

PORT = 9092
START_SECONDS, DUMP_SECONDS = 120.0, 120.0
ESTIMATE_SECONDS = 15
ONE_NODE = f"""\
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@{POD_ADDRESS}:9090
controller.listener.names=CONTROLPLANE
inter.broker.listener.name=REPLICATION
listeners=CONTROLPLANE://{POD_ADDRESS}:9090,REPLICATION://{POD_ADDRESS}:{PORT}
listener.security.protocol.map=CONTROLPLANE:PLAINTEXT,REPLICATION:PLAINTEXT
log.dirs=/var/lib/kafka/data-0/kafka-log1
metric.reporters=io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter
kafka.metrics.reporters=io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter
prometheus.metrics.reporter.listener=http://{POD_ADDRESS}:9404
"""


def archive(jars: Path) -> Path:
    """Return where the archive of a folder of jars is; an empty file says that none can be made."""
    return jars.with_name(f"{jars.name}.jsa")


def record(jars: Path, work: Path, metadata_version: str) -> None:
    """Run one node until it listens, and keep the classes it loaded; `work` is an empty folder."""
    made = work / "kafka.jsa"
    try:
        _run_once(jars, work, made, metadata_version)
    except StillwaterError:
        made.touch()  # a Java that records nothing will not do better next time
    made.replace(archive(jars))


def _run_once(jars: Path, work: Path, made: Path, metadata_version: str) -> None:
    config = {
        SERVER_CONFIG: ONE_NODE,
        CLUSTER_ID: "AAAAAAAAAAAAAAAAAAAAAA",
        METADATA_VERSION: metadata_version,
    }
    for name, text in config.items():
        (work / name).write_text(text)
    with claim_place() as place:  # for addresses that no running twin uses
        host = f"127.{place.number}.0.1"
        processes = Processes(work / "pids", work / "logs")
        try:
            child = processes.start(
                "kafka",
                [
                    *(sys.executable, "-m", "local.kafka.run", "--config", str(work)),
                    *("--work", str(work), "--address", host, "--jars", str(jars)),
                    *("--hosts", str(work / "hosts"), "--record", str(made)),
                    f"--mount=/var/lib/kafka/data-0={work / 'data'}",
                ],
                directory=REPOSITORY,
            )
            processes.wait_until(
                child,
                lambda: listens(host, PORT),
                within_seconds=START_SECONDS,
                what="its port is open",
            )
            child.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.popen.wait(DUMP_SECONDS)
        finally:
            processes.close()
    if not made.exists():
        raise StillwaterError("This Java records no class archive; Kafka starts without one.")
