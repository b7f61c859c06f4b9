"""The deployed λ volumes asks a Prometheus behind a Service of the shared cluster.

Function, token, RBAC, API server, Service, Endpoints and Prometheus are the real ones; what was
scraped is written into its storage beforehand.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.naming import claim as claim_name
from core.settings import prometheus_address
from core.settings.prometheus_address import Service
from core.settings.volumes import PrometheusSettings, Volumes
from handlers.store.records import DynamoRecords
from handlers.store.settings import read_settings
from local import environment
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster
from tests.integration.retold import retold
from tests.integration.served_prometheus import allowed, served
from tests.integration.stored_series import RATES, Busy, Room, exposition, store
from tests.integration.volume_stage import FUNCTION, schedule_stilled

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
ADDRESS = "http://prometheus-operated.monitoring.svc:9090"
# The demo's controllers have 20 GiB, and tell nobody but their kubelets how full those are.
FULL, EMPTY, UNSCRAPED = (
    claim_name(demo_spec.CLUSTER, *of, 0)
    for of in (("controller-a", 0), ("controller-b", 1), ("controller-c", 2))
)
# Which no test makes faster: what was measured before a change counts for nothing.
BUSY = claim_name(demo_spec.CLUSTER, "broker-b", 20, 0)


@pytest.fixture
def service() -> Service:
    found = prometheus_address.parse(ADDRESS)
    assert isinstance(found, Service)
    return found


@pytest.fixture
def volume_ids(cluster: Cluster) -> dict[str, str]:
    """The volume of every claim; what this test makes λ volumes remember of them ends with it."""
    path = "/api/v1/namespaces/kafka/persistentvolumeclaims"
    claims = cluster.twin.api.get(path)["items"]
    volumes = {
        item["metadata"]["name"]: item["spec"]["csi"]["volumeHandle"]
        for item in cluster.twin.api.get("/api/v1/persistentvolumes")["items"]
    }
    return {c["metadata"]["name"]: volumes[c["spec"]["volumeName"]] for c in claims}


@pytest.fixture
def prometheus(
    cluster: Cluster, service: Service, volume_ids: Mapping[str, str], tmp_path: Path
) -> Iterator[None]:
    rooms = [Room(claim=FULL, used_gib=18, size_gib=20), Room(claim=EMPTY, used_gib=1, size_gib=20)]
    busy = [Busy(volume_id=volume_ids[BUSY], rates=RATES)]
    with served(cluster, service, store(tmp_path, exposition(int(time.time()), rooms, busy))):
        yield


@pytest.fixture
def asking(cluster: Cluster, volume_ids: Mapping[str, str]) -> Iterator[None]:
    """The deployed function with the address in its settings, and its schedule still.

    What it remembers of the volumes meanwhile is none of the other tests' business.
    """
    functions = cluster.twin.aws("lambda")
    described = functions.get_function_configuration(FunctionName=FUNCTION)
    before = described["Environment"]["Variables"]
    known = read_settings(Volumes, before, client=cluster.twin.aws("dynamodb"))
    asked = replace(known.volumes, prometheus=PrometheusSettings(ADDRESS, {}))
    records = DynamoRecords(
        known.ledger_table,
        environment.REGION,
        client=cluster.twin.aws("dynamodb"),
    )
    keys = [f"volume#{volume_id}" for volume_id in volume_ids.values()]

    def tell(variables: Mapping[str, str]) -> None:
        functions.update_function_configuration(
            FunctionName=FUNCTION, Environment={"Variables": dict(variables)}
        )

    with schedule_stilled(cluster):
        remembered = {key: records.read(key).document for key in keys}
        tell(retold(before, volumes=asked))
        try:
            yield
        finally:
            tell(before)
            for key, document in remembered.items():
                records.write(key, document, records.read(key).version)


def plan(cluster: Cluster) -> dict[str, Any]:
    answer = cluster.twin.aws("lambda").invoke(
        FunctionName=FUNCTION, Payload=json.dumps({"dry_run": True}).encode()
    )
    shown: dict[str, Any] = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, shown
    return shown


def reason(shown: Mapping[str, Any], pool: str) -> str:
    return " ".join(d["reason"] for d in shown["decisions"] if d["pool"] == pool)


def test_the_deployed_function_asks_a_service_as_far_as_its_role_lets_it(
    cluster: Cluster, service: Service, prometheus: None, asking: None
) -> None:
    before = plan(cluster)
    refused = " ".join(before["unknown"])
    assert "Prometheus did not answer: The Kubernetes API answered 403" in refused
    assert f"the fill of {FULL} is not known" in reason(before, "controller-a")

    with allowed(cluster, service):
        shown = cluster.until(
            lambda: (found := plan(cluster)) and "403" not in str(found["unknown"]) and found,
            "the role is in force",
        )
    assert "did not answer" not in " ".join(shown["unknown"])
    # What it knows, it knows from Prometheus alone; what nobody scraped stays unknown, by name.
    assert f"{FULL} has less than 15% free" in reason(shown, "controller-a")
    assert EMPTY not in reason(shown, "controller-b")
    assert f"the fill of {UNSCRAPED} is not known" in reason(shown, "controller-c")
    assert f"{BUSY} was asked for more than" in reason(shown, "broker-b")
