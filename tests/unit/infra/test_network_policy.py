"""infra.pods: whom a port admits."""

from __future__ import annotations

from infra.pods import ingress


def test_a_port_without_a_peer_admits_nobody_and_none_admits_everybody() -> None:
    peer = {"ipBlock": {"cidr": "10.0.0.0/28"}}
    assert ingress({8443: [peer], 8083: [], 9404: None}) == [
        {"from": [peer], "ports": [{"port": 8443, "protocol": "TCP"}]},
        {"ports": [{"port": 9404, "protocol": "TCP"}]},
    ]
