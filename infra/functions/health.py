"""λ health: how the whole cluster does, for whoever in the account may invoke it (ADR 0013).

It is called on schedule as well: its verdict is a metric with an alarm, which tells also when
Prometheus cannot. RBAC names every pod it asks with its port, so it may GET that and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.cluster.operated import Operated
from core.constants import CONNECT_REST_PORT
from core.settings.functions import HealthSettings
from infra import iam
from infra.functions import rbac
from infra.functions.definition import Definition, Scope, find_open, on_items, read_settings


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        # What AWS said about zones; incidents come from the index.
        on_items(scope, "ReadFreezes", ["GetItem"], f"freezes#{scope.cluster.name}"),
        read_settings(scope),
        find_open(scope),
    ]


def _rights(cluster: Operated) -> rbac.Rights:
    # A worker's REST port would also take orders: GET is all that is asked, and allowed.
    rest = [f"{pod}:{CONNECT_REST_PORT}" for pod in cluster.connect_workers]
    return rbac.Rights(
        group="stillwater:health",
        inside=[
            rbac.may("", ["pods"], ["list"]),
            rbac.may_read_kafka(cluster),
            # Which nodes there are to be, where no description names them.
            *([] if cluster.nodes else [rbac.may("core.strimzi.io", ["strimzipodsets"], ["list"])]),
            *rbac.may_get("pods/proxy", [*cluster.exporters, *rest]),
            *rbac.may_get("secrets", cluster.secrets["health"]),
        ],
    )


def _own_settings(cluster: Operated) -> Mapping[str, Any]:
    return {
        "nodes": cluster.nodes,
        "exporters": bool(cluster.exporters),
        "connect_workers": len(cluster.connect_workers),
        "connect_startup_seconds": cluster.connect_startup_seconds,
        "connect_probe_seconds": cluster.timings.connect_probe_timeout_seconds,
    }


HEALTH = Definition(
    name="health",
    description="How the whole cluster does: 200, 503 or 500, and why",
    settings=HealthSettings,
    may=_may,
    own_settings=_own_settings,
    kubernetes=_rights,
    # Often enough to be a second pair of eyes beside Prometheus, and less than a cent a day.
    schedule=("rate(5 minutes)", "asks how the cluster does"),
)
