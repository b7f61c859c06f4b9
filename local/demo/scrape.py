"""Samples the demo as Prometheus would: the brokers' own metrics, asked every second.

The reporters are real, and so is what they say; only the one who asks is this thread instead of
Prometheus. What was seen is written as an answer of its range-query API, which the report reads.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from core.ground import naming
from local.demo import spec as demo_spec
from local.kubernetes.client import ApiError
from local.kubernetes.ebs import VOLUMES
from local.kubernetes.strimzi_config import METRICS_PORT
from local.twin import Twin

PERIOD_SECONDS = 1.0
# Every so many rounds the volumes are measured, which means walking through them.
VOLUMES_EVERY = 5
TIMEOUT_SECONDS = 2.0
NAMES = (
    "kafka_log_log_size",
    "kafka_server_brokertopicmetrics_bytesinpersec_total",
    "kafka_server_brokertopicmetrics_bytesoutpersec_total",
    "kafka_server_brokertopicmetrics_replicationbytesinpersec_total",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
)
VOLUME_USED = "kubelet_volume_stats_used_bytes"
# name{label="value",...} 1.0
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


def samples_of(text: str, labels: Mapping[str, str]) -> Iterator[tuple[Labels, str]]:
    """Yield the series of an exposition that the report reads, with the scraper's labels added."""
    for found in _SAMPLE.finditer(text):
        if found["name"] in NAMES:
            own = dict(_LABEL.findall(found["labels"] or ""))
            named = {"__name__": found["name"], **own, **labels}
            yield tuple(sorted(named.items())), found["value"]


class Scraper:
    """Asks every broker once a second, from `start` to `stop`."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._http = urllib3.PoolManager(retries=False, timeout=TIMEOUT_SECONDS)
        self._seen: dict[Labels, list[tuple[float, str]]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, path: Path) -> Path:
        """Ask no more, and write what was seen as an answer to a range query."""
        self._over.set()
        self._thread.join(10 * TIMEOUT_SECONDS)
        result = [
            {"metric": dict(labels), "values": values} for labels, values in self._seen.items()
        ]
        answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
        path.write_text(json.dumps(answer))
        return path

    def _run(self) -> None:
        rounds = 0
        due = time.time()
        while not self._over.wait(max(0.0, due - time.time())):
            # One moment for all brokers, as a range query's steps are.
            at = round(time.time(), 3)
            try:
                self._ask_brokers(at)
                if rounds % VOLUMES_EVERY == 0:
                    self._measure_volumes(at)
            except (ApiError, HTTPError, OSError):
                # A round that is missed is a gap, as it is in Prometheus.
                pass
            rounds += 1
            due = max(due + PERIOD_SECONDS, time.time())

    def _ask_brokers(self, at: float) -> None:
        ours = f"{naming.CLUSTER_LABEL}={demo_spec.CLUSTER}"
        for pod in self._twin.api.get("/api/v1/pods", labelSelector=ours)["items"]:
            name, address = pod["metadata"]["name"], pod["status"].get("podIP")
            node_id = naming.node_id_of_pod(name)
            if address is None or node_id is None:
                continue
            for labels, value in samples_of(self._answer(address), _labels_of(pod)):
                self._seen.setdefault(labels, []).append((at, value))

    def _answer(self, pod_ip: str) -> str:
        host = self._twin.place.socket_address(pod_ip)
        try:
            answer = self._http.request("GET", f"http://{host}:{METRICS_PORT}/metrics")
        except HTTPError:
            return ""
        return answer.data.decode() if answer.status == 200 else ""

    def _measure_volumes(self, at: float) -> None:
        for volume in self._twin.api.get(VOLUMES)["items"]:
            claim = (volume["spec"].get("claimRef") or {}).get("name")
            handle = (volume["spec"].get("csi") or {}).get("volumeHandle")
            if claim and handle:
                labels = {"__name__": VOLUME_USED, "persistentvolumeclaim": claim}
                used = used_bytes(self._twin.place.path("volumes", handle))
                self._seen.setdefault(tuple(labels.items()), []).append((at, f"{used}"))


def _labels_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return what the PodMonitor adds to a broker's series."""
    metadata = pod["metadata"]
    return {
        "cluster": demo_spec.CLUSTER,
        "namespace": metadata["namespace"],
        "pod": metadata["name"],
        "pool_name": metadata["labels"].get(naming.POOL_LABEL, ""),
    }


def used_bytes(directory: Path) -> int:
    """Return what a directory takes on disk: Kafka's indexes are larger than what they hold."""
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += Path(root, name).lstat().st_blocks * 512
            except OSError:
                # Rolled or deleted meanwhile.
                continue
    return total
