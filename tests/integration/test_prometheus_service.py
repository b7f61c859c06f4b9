"""Deployed functions ask a Prometheus behind a Service of the shared cluster.

λ volumes how full volumes are, λ tick what clients have lost since a run began. Function, token,
RBAC, API server, Service, Endpoints and Prometheus are the real ones; what was scraped is written
into its storage beforehand.

A real Prometheus as a pod of the shared cluster, behind a Service that functions may ask.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.rotate import Rotations
from core.ground.naming import claim as claim_name
from core.rotation.run_record import Phase, Run, RunState
from core.settings.prometheus import ProbeBudget, PrometheusService, parse_prometheus_address
from core.settings.volumes import PrometheusSettings, VolumesSettings
from handlers.store.table import Records, read_settings
from infra.functions import definition
from local import environment
from local.demo import spec as demo_spec
from local.kubernetes.client import ApiError
from local.kubernetes.images import PROCESS_IMAGE
from tests.integration.administrator import namespace
from tests.integration.cluster import Cluster
from tests.integration.retold import retell, variables_of
from tests.integration.stored_series import RATES, Attempted, Busy, Room, exposition, store
from tests.integration.volume_stage import FUNCTION, schedule_stilled

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 180.0
RBAC = "apis/rbac.authorization.k8s.io/v1"


@contextmanager
def serve_prometheus(
    cluster: Cluster, service: PrometheusService, command: Sequence[str]
) -> Iterator[None]:
    """Run a Prometheus in a namespace of its own, for the block; its Service selects the pod."""
    labels = {"app.kubernetes.io/name": "prometheus"}
    api, ports = cluster.twin.api, [{"name": "http-web", "port": service.port}]
    with namespace(api, service.namespace) as space:
        api.post(f"{space}/pods", _pod(service, labels, command))
        spec = {"selector": labels, "ports": ports}
        api.post(f"{space}/services", {"metadata": {"name": service.name}, "spec": spec})
        cluster.until(
            lambda: _answers(cluster, service), "the Service leads to Prometheus", PATIENCE_SECONDS
        )
        yield


@contextmanager
def allow_functions(cluster: Cluster, service: PrometheusService, users: str) -> Iterator[None]:
    """Allow a group of functions what infra.functions does where a spec names this Service."""
    role_name = f"stillwater-{users}"
    (rule,) = definition.may_get("services/proxy", [service.resource_name])
    metadata = {"name": role_name}
    role = {
        "metadata": metadata,
        "rules": [
            {
                "apiGroups": [rule.api_group],
                "resources": rule.resources,
                "resourceNames": rule.names,
                "verbs": rule.verbs,
            }
        ],
    }
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": definition.API_GROUP, "kind": "Role", "name": role_name},
        "subjects": [
            {"apiGroup": definition.API_GROUP, "kind": "Group", "name": f"stillwater:{users}"}
        ],
    }
    space = f"/{RBAC}/namespaces/{service.namespace}"
    cluster.twin.api.post(f"{space}/roles", role)
    cluster.twin.api.post(f"{space}/rolebindings", binding)
    try:
        yield
    finally:
        for kind in ("rolebindings", "roles"):
            cluster.twin.api.delete(f"{space}/{kind}/{role_name}")


def _pod(
    service: PrometheusService, labels: Mapping[str, str], command: Sequence[str]
) -> dict[str, Any]:
    # A pod that reports 10.N.x.y listens on 127.N.x.y (docs/twin.md).
    listen = f'exec "$0" "$@" --web.listen-address="127.${{POD_IP#10.}}:{service.port}"'
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": "prometheus",
        "image": PROCESS_IMAGE,
        "command": ["sh", "-c", listen, *command],
        "env": [address],
        "ports": [{"containerPort": service.port}],
        "readinessProbe": {
            "httpGet": {"path": "/-/ready", "port": service.port},
            "periodSeconds": 1,
            "timeoutSeconds": 10,
            "failureThreshold": 60,
        },
    }
    return {
        "metadata": {"name": "prometheus-0", "labels": labels},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
        },
    }


def _answers(cluster: Cluster, service: PrometheusService) -> bool:
    proxy = f"/api/v1/namespaces/{service.namespace}/services/{service.resource_name}/proxy"
    try:
        return bool(cluster.twin.api.get(f"{proxy}/api/v1/query", query="1")["status"] == "success")
    except ApiError as error:
        if error.status in (404, 500, 502, 503):  # no pod of it is ready yet
            return False
        raise


ADDRESS = "http://prometheus-operated.monitoring.svc:9090"
# The demo's controllers have 20 GiB, and tell nobody but their kubelets how full those are.
FULL, EMPTY, UNSCRAPED = (
    claim_name(demo_spec.CLUSTER, *of, 0)
    for of in (("controller-a", 0), ("controller-b", 1), ("controller-c", 2))
)
# Which no test makes faster: what was measured before a change counts for nothing.
BUSY = claim_name(demo_spec.CLUSTER, "broker-b", 20, 0)
TICK = f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}-tick"
BROKER = 20


@pytest.fixture(scope="module")
def service() -> PrometheusService:
    found = parse_prometheus_address(ADDRESS)
    assert isinstance(found, PrometheusService)
    return found


@pytest.fixture(scope="module")
def volume_ids(provisioned: Cluster) -> dict[str, str]:
    """The volume of every claim."""
    path = "/api/v1/namespaces/kafka/persistentvolumeclaims"
    claims = provisioned.twin.api.get(path)["items"]
    volumes = {
        item["metadata"]["name"]: item["spec"]["csi"]["volumeHandle"]
        for item in provisioned.twin.api.get("/api/v1/persistentvolumes")["items"]
    }
    return {c["metadata"]["name"]: volumes[c["spec"]["volumeName"]] for c in claims}


@pytest.fixture(scope="module")
def prometheus(
    provisioned: Cluster,
    service: PrometheusService,
    volume_ids: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    rooms = [Room(claim=FULL, used_gib=18, size_gib=20), Room(claim=EMPTY, used_gib=1, size_gib=20)]
    busy = [Busy(volume_id=volume_ids[BUSY], rates=RATES)]
    # A tenth fails: of 99.9 % it is a hundred times what there is to lose.
    probes = [Attempted(cluster=demo_spec.CLUSTER, attempts=3.0, failed=0.3)]
    home: Path = tmp_path_factory.mktemp("prometheus")
    series = exposition(int(time.time()), rooms, busy, probes)
    with serve_prometheus(provisioned, service, store(home, series)):
        yield


@pytest.fixture
def asking(cluster: Cluster, volume_ids: Mapping[str, str]) -> Iterator[None]:
    """The deployed function with the address in its settings, and its schedule still.

    What it remembers of the volumes meanwhile is none of the other tests' business.
    """
    variables = variables_of(cluster, FUNCTION)
    known = read_settings(VolumesSettings, variables, client=cluster.twin.aws("dynamodb"))
    asked = replace(known.volumes, prometheus=PrometheusSettings(ADDRESS, {}))
    records = Records(known.ledger_table, environment.REGION, client=cluster.twin.aws("dynamodb"))
    keys = [f"volume#{volume_id}" for volume_id in volume_ids.values()]

    with schedule_stilled(cluster):
        remembered = {key: records.read(key).document for key in keys}
        try:
            with retell(cluster, FUNCTION, volumes=asked):
                yield
        finally:
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
    cluster: Cluster, service: PrometheusService, prometheus: None, asking: None
) -> None:
    before = plan(cluster)
    refused = " ".join(before["unknown"])
    assert "Prometheus did not answer: The Kubernetes API answered 403" in refused
    assert f"the fill of {FULL} is not known" in reason(before, "controller-a")

    with allow_functions(cluster, service, "volumes"):
        shown = cluster.until(
            lambda: (
                (found := plan(cluster)) and "answered 403" not in str(found["unknown"]) and found
            ),
            "the role is in force",
        )
    assert "did not answer" not in " ".join(shown["unknown"])
    # What it knows, it knows from Prometheus alone; what nobody scraped stays unknown, by name.
    assert f"{FULL} has less than 15% free" in reason(shown, "controller-a")
    assert EMPTY not in reason(shown, "controller-b")
    assert f"the fill of {UNSCRAPED} is not known" in reason(shown, "controller-c")
    assert f"{BUSY} had demand above" in reason(shown, "broker-b")


def test_a_run_waits_while_nobody_counts_and_stops_where_clients_fail(
    cluster: Cluster, service: PrometheusService, prometheus: None, rotations: Rotations
) -> None:
    allowed_percent = 0.1
    budget = ProbeBudget(
        address=ADDRESS, labels={}, objective_percent=99.9, rotation_percent=allowed_percent
    )

    def run() -> Run:
        found = rotations.run()
        assert found is not None
        return found

    with retell(cluster, TICK, probe_budget=budget):
        rotations.ask("start", selection={"node_ids": [BROKER]})
        try:
            # Its role may not ask: what clients lose is unknown, and nobody begins.
            cluster.until(lambda: "403" in run().reason, "the run waits for a count")
            assert f"unknown, so node {BROKER} waits" in run().reason
            assert run().state is RunState.RUNNING
            with allow_functions(cluster, service, "handlers"):
                cluster.until(lambda: run().state is RunState.STOPPED, "the run stops itself", 120)
            stopped = run()
            assert "attempts of the probe failed within 5 min: 1.2 %" in stopped.reason
            assert f"This run may spend {allowed_percent:g} %" in stopped.reason
            assert stopped.turn_of(BROKER).phase is Phase.WAITING
            assert stopped.turn_of(BROKER).incident_id is None
        finally:
            rotations.ask("abort")
            cluster.until(lambda: run().over, "the run is over")
