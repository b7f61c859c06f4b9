"""Names of pods and Services in the twin's hosts file."""

import socket
from pathlib import Path
from typing import Any

from local.kubernetes.dns import names, render
from local.place import Place


def pod(name: str, address: str, *, ready: bool = True, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kafka", "labels": {"app": "demo"}},
        "spec": spec,
        "status": {
            "podIP": address,
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kafka"},
        "spec": {"selector": {"app": "demo"}, **spec},
    }


def lookup(rows: list[tuple[str, str]], name: str) -> list[str]:
    return [address for address, found in rows if found == name]


def test_a_service_leads_to_its_ready_pods_unless_it_publishes_them_early() -> None:
    pods = [pod("demo-0", "10.11.5.6", ready=False), pod("demo-1", "10.11.5.7")]
    services = [service("late"), service("early", publishNotReadyAddresses=True)]
    rows = names(pods, services)
    assert lookup(rows, "late.kafka.svc.cluster.local") == ["10.11.5.7"]
    assert lookup(rows, "early.kafka.svc.cluster.local") == ["10.11.5.6", "10.11.5.7"]


def test_pods_that_ended_or_have_no_address_have_no_name() -> None:
    ended = pod("demo-0", "10.11.5.6", subdomain="brokers")
    ended["status"]["phase"] = "Failed"
    fresh = pod("demo-1", "", subdomain="brokers")
    assert names([ended, fresh], [service("brokers")]) == []


def test_names_lead_to_loopback_and_the_machines_own_stay(tmp_path: Path) -> None:
    text = render([("10.11.5.6", "a.kafka"), ("10.12.5.6", "another.twins")], Place(11, tmp_path))
    first, *rest = text.splitlines()
    assert first.startswith("127.0.0.1 ")
    assert {"localhost", socket.gethostname()} <= set(first.split())
    assert rest == ["127.11.5.6 a.kafka"]
