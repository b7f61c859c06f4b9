"""A pod on its node: the address it gets, and what its status says."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.kubernetes.pods import Addresses, PodObservation, creating, pod_status


def test_pods_start_in_the_middle_and_a_freed_address_rests() -> None:
    addresses = Addresses()
    assert addresses.take("a", "10.11.64.0/18", []) == "10.11.96.0"
    addresses.give_back("a")
    assert addresses.take("b", "10.11.64.0/18", []) == "10.11.96.1"


def test_a_small_subnet_is_used_up_but_for_what_aws_keeps() -> None:
    addresses = Addresses()
    taken = {addresses.take(str(i), "10.11.0.0/28", ["10.11.0.4"]) for i in range(10)}
    assert taken == {f"10.11.0.{host}" for host in range(5, 15)}
    with pytest.raises(ValueError, match=r"10\.11\.0\.0/28"):
        addresses.take("more", "10.11.0.0/28", ["10.11.0.4"])
    addresses.give_back("3")
    assert addresses.take("more", "10.11.0.0/28", ["10.11.0.4"]) in taken


def test_an_address_kept_after_a_restart_goes_to_nobody_else() -> None:
    addresses = Addresses()
    assert addresses.keep("old", "10.11.0.128") == "10.11.0.128"
    assert addresses.take("new", "10.11.0.0/24", []) == "10.11.0.129"


@given(st.lists(st.booleans(), max_size=200), st.integers(24, 27))
def test_no_two_pods_ever_share_an_address(takes: list[bool], prefix: int) -> None:
    addresses, held = Addresses(), dict[str, str]()
    network = ipaddress.IPv4Network(f"10.11.249.0/{prefix}")
    for number, take in enumerate(takes):
        if take and len(held) < network.num_addresses - 5:
            held[str(number)] = addresses.take(str(number), str(network), [])
        elif held:
            uid = next(iter(held))
            addresses.give_back(uid)
            del held[uid]
        assert len(set(held.values())) == len(held)
        assert all(ipaddress.IPv4Address(address) in network for address in held.values())


def test_the_twins_own_addresses_are_no_pods() -> None:
    addresses = Addresses()
    cidr = "10.11.250.0/23"
    with pytest.raises(ValueError, match=r"10\.11\.250\.0/23"):
        addresses.take("a", cidr, [])


NOW, BEFORE = "2026-11-20T10:00:00Z", "2026-11-20T09:00:00Z"
GATE = "target-health.elbv2.k8s.aws/demo-broker-10"


def pod(*gates: str, conditions: list[dict[str, Any]] | None = None, **more: Any) -> Any:
    return {
        "metadata": {"generation": 4},
        "spec": {"readinessGates": [{"conditionType": gate} for gate in gates]},
        "status": {"conditions": conditions or [], **more},
    }


def running(*, ready: bool) -> dict[str, Any]:
    state = {"running": {"startedAt": BEFORE}}
    return {"name": "kafka", "ready": ready, "state": state, "lastState": {}}


def seen(*containers: dict[str, Any], **more: Any) -> PodObservation:
    facts: dict[str, Any] = {
        "pod_ip": "10.11.5.6",
        "host_ip": "10.11.0.4",
        "started_at": BEFORE,
        "sandbox": True,
        "containers": containers,
    }
    return PodObservation(**{**facts, **more})


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(dict(c) for c in status["conditions"] if c["type"] == kind)


@pytest.mark.parametrize(
    ("gates", "known", "ready", "ended", "reason", "named"),
    [
        pytest.param((), [], True, None, None, "", id="ready"),
        pytest.param((), [], False, None, "ContainersNotReady", "[kafka]", id="not ready"),
        pytest.param((GATE,), [], True, None, "ReadinessGatesNotReady", GATE, id="gate"),
        pytest.param((GATE,), [{"type": GATE, "status": "True"}], True, None, None, "", id="open"),
        pytest.param((), [], True, "Failed", "PodFailed", "", id="ended"),
    ],
)
def test_a_pod_is_ready_when_its_containers_and_its_gates_are_until_it_ends(
    gates: tuple[str, ...],
    known: list[dict[str, Any]],
    *,
    ready: bool,
    ended: str | None,
    reason: str | None,
    named: str,
) -> None:
    status = pod_status(pod(*gates, conditions=known), seen(running(ready=ready), ended=ended), NOW)
    found = condition(status, "Ready")
    assert (found["status"] == "True", found.get("reason")) == (reason is None, reason)
    assert named in (found.get("message") or "")
    assert status["phase"] == (ended or "Running")
    # A gate's condition is left to its owner.
    assert GATE not in {c["type"] for c in status["conditions"]}
    if not ended:
        own = condition(status, "ContainersReady")["status"]
        assert (own, status["podIPs"]) == (str(ready), [{"ip": "10.11.5.6"}])


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    known = [
        {"type": "ContainersReady", "status": "False", "lastTransitionTime": BEFORE},
        {"type": "Initialized", "status": "True", "lastTransitionTime": BEFORE},
    ]
    status = pod_status(pod(conditions=known), seen(running(ready=True)), NOW)
    assert condition(status, "Initialized")["lastTransitionTime"] == BEFORE
    assert condition(status, "ContainersReady")["lastTransitionTime"] == NOW


def test_a_pod_that_waits_for_its_volumes_is_pending_and_has_no_address_yet() -> None:
    waiting = creating({"name": "kafka", "image": "i"}, "its volumes are not attached yet")
    status = pod_status(pod(), seen(waiting, sandbox=False), NOW)
    assert status["phase"] == "Pending"
    assert "podIP" not in status
    assert condition(status, "PodReadyToStartContainers")["status"] == "False"


def test_a_pod_that_ran_is_running_while_it_starts_again() -> None:
    waiting = creating({"name": "kafka", "image": "i"}, "")
    status = pod_status(pod(phase="Running"), seen(waiting, sandbox=False), NOW)
    assert status["phase"] == "Running"
    assert condition(status, "Ready")["status"] == "False"
