"""A Strimzi container's process: renders its config, formats new volumes, becomes the JVM.

Which JVM follows from the configuration it is given: a Kafka node or a Connect worker.

`python -m local.kafka.run` ends in exec, so the kubelet's SIGTERM reaches Kafka itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.kafka.classes import archive
from local.kafka.container import (
    CLUSTER_ID,
    CONNECT_CONFIG,
    METADATA_VERSION,
    POD_ADDRESS,
    RACK,
    SERVER_CONFIG,
)

LOGGING = Path(__file__).with_name("log4j2.xml")
# Measured: enough for a demo's data, about 150 MB resident. The pool's own heap is for real nodes.
HEAP = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# The default of 128 MB does not fit into the heap above: the broker dies with OutOfMemoryError.
SMALL_HEAP_DEFAULTS = {"log.cleaner.dedupe.buffer.size": "8388608"}


def in_place(template: str, address: str, rack: str) -> str:
    """Return a configuration with what is only known where the pod runs."""
    return template.replace(POD_ADDRESS, address).replace(RACK, rack)


def effective(template: str, address: str, mounts: Mapping[str, Path], rack: str = "") -> str:
    """Return server.config for this machine: real directories, the pod's address, a small heap.

    Settings of the template win over our defaults.
    """
    text = real_paths(in_place(template, address, rack), mounts)
    given = settings(text)
    extra = [f"{k}={v}" for k, v in SMALL_HEAP_DEFAULTS.items() if k not in given]
    return "\n".join([text.rstrip("\n"), *extra]) + "\n"


def real_paths(text: str, mounts: Mapping[str, Path]) -> str:
    """Return a configuration with this machine's directories for the pod's."""
    for path in sorted(mounts, key=len, reverse=True):
        # Only a whole path: /data-1 is no prefix of /data-10.
        text = re.sub(
            rf"(?<=[=,:]){re.escape(path)}(?=[/,:\n]|$)",
            str(mounts[path]).replace("\\", r"\\"),
            text,
        )
    return text


def settings(config: str) -> dict[str, str]:
    """Return the settings of a properties file, as far as the operator writes such files."""
    pairs = (line.partition("=") for line in config.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}


def unformatted_directories(config: str) -> list[Path]:
    """Return the log directories that no storage tool has seen yet."""
    directories = [Path(part) for part in settings(config)["log.dirs"].split(",")]
    return [directory for directory in directories if not (directory / "meta.properties").exists()]


def jvm(jars: Path, hosts: Path) -> list[str]:
    """Return the start of every command line: small, and resolving names as the cluster's DNS."""
    recorded = archive(jars)
    known = recorded.exists() and recorded.stat().st_size > 0
    return [
        *("java", *HEAP),
        *([f"-XX:SharedArchiveFile={recorded}"] if known else []),
        # Names change their address when a pod moves: Java must not remember the old one.
        *(f"-Djdk.net.hosts.file={hosts}", "-Dsun.net.inetaddr.ttl=1"),
        *("-Dsun.net.inetaddr.negative.ttl=0", "-Djava.net.preferIPv4Stack=true"),
        *("-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={LOGGING}"),
        *("-cp", f"{jars}/*"),
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="local.kafka.run", description=__doc__)
    for name in ("--config", "--work", "--jars", "--hosts"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--mount", action="append", default=[])
    parser.add_argument("--rack", default="")
    given = parser.parse_args(arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    given.hosts.touch()  # Java refuses to resolve anything without the file it is told to read
    # The archive is bound to the jars' own paths, which a twin reaches through a link.
    java = jvm(given.jars.resolve(), given.hosts)
    worker = (given.config / CONNECT_CONFIG).exists()
    program = _connect(given) if worker else _kafka(given, java)
    if given.record is not None:
        java.append(f"-XX:ArchiveClassesAtExit={given.record}")
    sys.stdout.flush()
    os.chdir(given.work)
    os.execvp(java[0], [*java, *program])  # noqa: S606  # a list, no shell


def pem_files(mounts: Mapping[str, Path], work: Path) -> dict[str, Path]:
    """Write each mount of certificates as one file; return the files by <mount>.pem.

    Kafka reads a key with its certificates, and several authorities, from one file each.
    """
    found = {}
    for path, directory in mounts.items():
        if path.endswith("-certs"):
            texts = [each.read_text() for end in ("key", "crt") for each in _ending(directory, end)]
            joined = found[f"{path}.pem"] = work / f"{Path(path).name}.pem"
            joined.touch(mode=0o600)
            joined.write_text("\n".join(texts))
    return found


def _ending(directory: Path, end: str) -> list[Path]:
    return sorted(directory.glob(f"*.{end}"))


def _kafka(given: argparse.Namespace, java: Sequence[str]) -> list[str]:
    """Write the node's configuration, format what is new; return the main class and arguments."""
    mounts = _mounts(given)
    template = (given.config / SERVER_CONFIG).read_text()
    mounts |= pem_files(mounts, given.work)
    config = effective(template, given.address, mounts, given.rack)
    server_config = given.work / SERVER_CONFIG
    server_config.write_text(config)
    if unformatted_directories(config):
        tool = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        cluster_id = (given.config / CLUSTER_ID).read_text().strip()
        release = (given.config / METADATA_VERSION).read_text().strip()
        subprocess.run(
            [*tool, "-t", cluster_id, "-c", str(server_config), "--release-version", release],
            check=True,
        )
    return ["kafka.Kafka", str(server_config)]


def _mounts(given: argparse.Namespace) -> dict[str, Path]:
    return {path: Path(real) for path, _, real in (m.partition("=") for m in given.mount)}


def _connect(given: argparse.Namespace) -> list[str]:
    """Write the worker's configuration; return the main class and arguments."""
    properties: Path = given.work / CONNECT_CONFIG
    mounts = _mounts(given)
    text = in_place((given.config / CONNECT_CONFIG).read_text(), given.address, given.rack)
    properties.write_text(real_paths(text, {**mounts, **pem_files(mounts, given.work)}))
    return ["org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]


if __name__ == "__main__":
    main(sys.argv[1:])
