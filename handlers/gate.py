"""The eviction gate: `python -m stillwater.inside gate`, a webhook of the API server's.

Told like the functions, by its environment and the ledger's table, and made of the same parts: what
it answers is handlers.eviction.gate's, what it shows is handlers.eviction.certificate's.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ssl
from functools import partial
from typing import Any
from urllib.parse import quote

import uvicorn
from anyio import to_thread
from aws_lambda_powertools import Logger

from core.ground.errors import StillwaterError
from core.ground.naming import gate_host
from core.incidents.actions import OWN
from core.settings.functions import GateSettings as Settings
from handlers.adapters.aws import Queue
from handlers.adapters.claims import wanted_pods
from handlers.adapters.eks import EksApi, open_api
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.kubernetes import open_claims
from handlers.eviction.certificate import Keeper
from handlers.eviction.gate import Gate, Recent, RecentClaims, RecentCloud, RecentKafka, RecentNodes
from handlers.eviction.server import AT_ONCE, Counts, application
from handlers.incidents.observe import Sources
from handlers.incidents.reception import Reception
from handlers.store.documents import Freezes
from handlers.store.ledger import open_ledger
from handlers.store.table import Records, read_settings

logger = Logger(service="stillwater")
# A renewed certificate is shown by both replicas this soon.
REFRESH_SECONDS = 10.0
# A pod that is told to stop is still asked for as long as Services name it.
GRACEFUL_SECONDS = 10
# Far more than an API server opens; each costs memory before a byte of it is read.
MOST_CONNECTIONS = 512


def open_gate(settings: Settings, api: EksApi) -> Gate:
    """Return the gate with everything it asks and writes."""
    recent = Recent(settings.reading_age_seconds)
    records = Records(settings.ledger_table, settings.region)
    ledger = open_ledger(settings)
    cloud = RecentCloud(recent, settings.region)
    access = KafkaAccess(settings.kafka, api)
    return Gate(
        sources=Sources(
            cloud=cloud,
            nodes=RecentNodes(
                recent, api, settings.namespace, settings.cluster, settings.pool_labels
            ),
            kafka=RecentKafka(recent, settings.kafka_bootstrap, access),
            ledger=ledger,
            freezes=Freezes(records, settings.cluster),
            claims=RecentClaims(recent, open_claims(settings, api)),
        ),
        reception=Reception(
            ledger=ledger,
            cloud=cloud,
            ticks=Queue(settings.ticks_queue_url, settings.region),
            whose=settings.whose,
            records=records,
        ),
        forget_readings=recent.forget,
        policy=settings.policy,
        reach=settings.reach,
        namespace=settings.namespace,
        cluster=settings.cluster,
        operators=frozenset(settings.operators),
        lease_seconds=settings.lease_seconds,
    )


async def serve(server: uvicorn.Server, keeper: Keeper, context: ssl.SSLContext) -> None:
    """Serve until told to stop, and keep the certificate meanwhile."""
    refreshing = asyncio.create_task(_refresh_again_and_again(keeper, context))
    try:
        await server.serve()
    finally:
        refreshing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await refreshing


async def _refresh_again_and_again(keeper: Keeper, context: ssl.SSLContext) -> None:
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await to_thread.run_sync(lambda: keeper.refresh(context, dt.datetime.now(dt.UTC)))
        except StillwaterError as error:
            # The certificate that is shown holds for a month yet.
            logger.warning("The certificate was not looked at.", error=str(error))


def server_of(app: Any, context: ssl.SSLContext, host: str, port: int) -> uvicorn.Server:
    """Return the web server, over TLS alone."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        limit_concurrency=MOST_CONNECTIONS,
    )
    config.load()
    config.ssl = context
    return uvicorn.Server(config)


def main() -> None:
    """Serve the gate."""
    settings = read_settings(Settings)
    api = open_api(settings, AT_ONCE)
    gate = open_gate(settings, api)
    name, namespace = settings.gate_name, settings.gate_namespace
    keeper = Keeper(
        api,
        secret_path=f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}",
        webhook=name,
        hosts=[gate_host(name, namespace)],
        # A description of ours names its pools; what exists is asked.
        pods=None
        if settings.level == OWN
        else partial(wanted_pods, api, settings.namespace, settings.cluster),
    )

    context = keeper.context(dt.datetime.now(dt.UTC))
    app = application(gate, Counts(), keeper.admits)
    # Every address of its own pod: the API server dials the pod.
    server = server_of(app, context, "0.0.0.0", settings.port)  # noqa: S104
    asyncio.run(serve(server, keeper, context))


if __name__ == "__main__":
    main()
