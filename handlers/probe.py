"""The probe: `python -m stillwater.inside probe`, one pod in the cluster, for ever.

Once a second it produces a record to every broker and reads it back, as an application would, and
tells Prometheus how long that took and what failed. A certificate that was renewed, or a broker
that has joined, is met by a new start: the kubelet makes one within seconds.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from core.ground.errors import StillwaterError
from core.settings import codec
from core.settings.prometheus import ProbeSettings
from handlers import probing
from handlers.adapters.eks import trusting
from handlers.probing import Attempts, Clients, brokers_changed, run

logger = Logger(service="stillwater")
# How often it looks whether brokers have joined or the kubelet has put another certificate there.
LOOK_SECONDS = 60.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def main() -> None:
    """Probe until something asks for a new start; raises StillwaterError where it cannot begin."""
    settings = codec.read(ProbeSettings, codec.read_settings_text(os.environ))
    identity = credentials(settings)
    partitions = probing.ensure_topic(identity, settings.topic, settings.replication_factor)
    attempts = Attempts(partitions, settings.latency_seconds)
    clients = Clients(identity, settings.topic, partitions, attempts, settings.latency_seconds)
    clients.start()
    serve(attempts, settings)
    anew = threading.Event()
    watched = threading.Thread(target=_watch, args=(settings, identity, partitions, anew))
    watched.daemon = True
    watched.start()
    logger.info("Probing.", brokers=sorted(partitions))
    run(clients.attempt, attempts, anew.is_set)


def credentials(settings: ProbeSettings) -> dict[str, Any]:
    """Return kafka-python's settings from the Secrets that are mounted."""
    found: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap),
        "security_protocol": settings.security,
    }
    user = Path(settings.user_directory)
    if settings.security.endswith("SSL"):
        # While an authority is renewed, both the old one and the new one sign.
        files = sorted(Path(settings.authority_directory).glob("*.crt"))
        context = trusting("\n".join(each.read_text() for each in files), "The brokers'")
        if settings.security == "SSL" and (user / "user.crt").is_file():
            _show(context, user)
        found["ssl_context"] = context
    if settings.security.startswith("SASL"):
        found["sasl_mechanism"] = "SCRAM-SHA-512"
        found["sasl_plain_username"] = settings.user
        found["sasl_plain_password"] = (user / "password").read_text()
    return found


def _show(context: ssl.SSLContext, user: Path) -> None:
    try:
        context.load_cert_chain(user / "user.crt", user / "user.key")
    except ssl.SSLError as error:
        raise StillwaterError(
            f"The probe's certificate and key are not a pair: {error.reason}."
        ) from None


def serve(attempts: Attempts, settings: ProbeSettings) -> ThreadingHTTPServer:
    """Answer Prometheus in a thread of its own."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = attempts.page().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", METRICS_TYPE)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            """Log no scrape."""

    server = ThreadingHTTPServer((settings.host, settings.port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _watch(
    settings: ProbeSettings,
    identity: Mapping[str, Any],
    known: Mapping[int, int],
    anew: threading.Event,
) -> None:
    before = _mounted_files(settings)
    while not anew.is_set():
        time.sleep(LOOK_SECONDS)
        if _mounted_files(settings) != before:
            logger.info("The credentials were renewed: starting again.")
            anew.set()
        try:
            admin = KafkaAdminClient(**identity)
            joined = brokers_changed(known, probing.racks(admin))
            admin.close()
        except KafkaError as error:
            logger.warning("The brokers could not be listed.", error=repr(error))
            continue
        if joined:
            logger.info("A broker has joined: starting again.")
            anew.set()


def _mounted_files(settings: ProbeSettings) -> dict[str, bytes]:
    folders = (Path(settings.authority_directory), Path(settings.user_directory))
    files = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
    return {str(file): file.read_bytes() for file in files if file.is_file()}


if __name__ == "__main__":
    main()
