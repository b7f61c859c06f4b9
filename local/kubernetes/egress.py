"""The API server's way to pods: a CONNECT proxy between the VPC's addresses and this machine's.

A webhook behind a Service is dialled at its pod's address, which on this machine is a loopback
address. The API server has a setting for networks it cannot route to, the egress selector, and
the twin uses that. It speaks plainly to a proxy on a Unix socket only; an abstract one has no path
that could be too long. Run it as `python -m local.kubernetes.egress` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import yaml

from local.place import Place, dial
from local.processes import stop_event

CONNECT_SECONDS = 5.0
CHUNK_BYTES = 65536


def socket_name(place: Place) -> str:
    """Return the name of the proxy's socket in the kernel's abstract namespace."""
    return f"stillwater-egress-{place.number}"


def write_selection(place: Place) -> Path:
    """Write the API server's egress selection: all it sends into the cluster goes by the proxy."""
    path = place.path("egress.yaml")
    transport = {"uds": {"udsName": f"@{socket_name(place)}"}}
    selection = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {
                "name": "cluster",
                "connection": {"proxyProtocol": "HTTPConnect", "transport": transport},
            }
        ],
    }
    path.write_text(yaml.safe_dump(selection))
    return path


class _Tunnel(BaseHTTPRequestHandler):
    """One CONNECT: opened to addresses of the VPC, refused to all others."""

    server: Egress

    def handle(self) -> None:
        # Whoever asked has given up; there is nobody to tell.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        where = dial(self.server.place, host, int(port)) if port.isdigit() else None
        if where is None:
            self.send_error(403, "Only addresses of the twin's VPC are reachable")
            return
        try:
            upstream = socket.create_connection(where, CONNECT_SECONDS)
        except OSError as error:
            self.send_error(502, f"{self.path} did not answer: {error}")
            return
        with upstream:
            # No headers: the API server takes what follows the empty line for the tunnel.
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            self.wfile.flush()
            splice(self.connection, upstream)
        self.close_connection = True

    def log_message(self, *_format_and_values: object) -> None:
        """Say nothing: failures are logged by the API server."""


def splice(left: socket.socket, right: socket.socket) -> None:
    """Carry bytes both ways until both sides have said all."""
    open_ways = {left: right, right: left}
    while open_ways:
        for source in select.select(list(open_ways), [], [])[0]:
            target = open_ways[source]
            try:
                data = source.recv(CHUNK_BYTES)
                if data:
                    target.sendall(data)
                    continue
                target.shutdown(socket.SHUT_WR)
            except OSError:
                return
            del open_ways[source]


class Egress(socketserver.ThreadingUnixStreamServer):
    """The proxy; one thread per connection."""

    daemon_threads = True

    def __init__(self, place: Place) -> None:
        self.place = place
        super().__init__(f"\0{socket_name(place)}", _Tunnel)


def main() -> None:
    """Serve until SIGTERM."""
    ended = stop_event()
    with Egress(Place.load()) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        ended.wait()
        proxy.shutdown()


if __name__ == "__main__":
    main()
