"""Records Kafka's classes once, so that every later JVM maps them instead of parsing jars.

Six nodes start at once on a laptop's few cores, and class loading is most of it: with the archive a
node is up in about half the time. It is an optimisation and never a condition: without an archive,
or with one of another Java, the JVM starts as it always did.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from core.errors import StillwaterError
from local.kafka.container import CLUSTER_ID, METADATA_VERSION, SERVER_CONFIG
from local.place import Place, claimed
from local.processes import Processes
from local.tools.cache import making

ARCHIVE = "kafka.jsa"
PORT = 9092
START_SECONDS, DUMP_SECONDS = 120.0, 120.0
REPOSITORY = Path(__file__).resolve().parents[2]


def archive(jars: Path) -> Path:
    """Return where the archive of these jars and this machine's Java is, or would be."""
    java = shutil.which("java") or ""
    identity = f"{os.path.realpath(java)} {Path(java).stat().st_mtime_ns if java else 0}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return jars.parent / f"{jars.name}-classes-{digest}" / ARCHIVE


def record(jars: Path) -> bool:
    """Run one node for as long as it takes to start, and keep what it loaded.

    Returns whether there is an archive now; a Java that cannot make one is no error.
    """
    home = archive(jars).parent
    with contextlib.suppress(StillwaterError), making(home, lambda: None) as staging:
        if staging is not None:
            _run_once(jars, staging)
            shutil.rmtree(staging / "work")
    return archive(jars).exists()


def _run_once(jars: Path, staging: Path) -> None:
    with claimed() as place:
        host = place.host("kafka-classes")
        _write_config(host, staging / "work")
        processes = Processes(staging / "work" / "pids", staging / "work" / "logs")
        try:
            child = processes.start(
                "kafka",
                [
                    *(sys.executable, "-m", "local.kafka.run"),
                    *("--config", str(staging / "work"), "--work", str(staging / "work" / "node")),
                    *("--address", host, "--jars", str(jars)),
                    *("--hosts", str(staging / "work" / "hosts")),
                    *("--record", str(staging / ARCHIVE)),
                ],
                directory=REPOSITORY,
            )
            processes.wait_until(
                child,
                lambda: _answers(host),
                within_seconds=START_SECONDS,
                what="its port is open",
            )
            child.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.popen.wait(DUMP_SECONDS)
        finally:
            processes.close()
    if not (staging / ARCHIVE).exists():
        raise StillwaterError("This Java records no class archive; Kafka starts without one.")
