"""λ health: how the whole cluster does, for whoever in the account may invoke it (ADR 0013).

It is called on schedule as well: its verdict is a metric with an alarm, which tells also when
Prometheus cannot. RBAC names every pod it asks with its port, so it may GET that and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from core import naming
from core.cluster import ClusterSpec
from core.constants import CONNECT_REST_PORT
from core.settings.functions import Health
from infra import iam
from infra.functions import rbac
from infra.functions.definition import Definition, Scope, find_open, on_items, read_settings
from infra.functions.settings import kafka_secrets


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        # What AWS said about zones; incidents come from the index.
        on_items(scope, "ReadFreezes", ["GetItem"], f"freezes#{scope.spec.name}"),
        read_settings(scope),
        find_open(scope),
    ]


def _rights(spec: ClusterSpec) -> rbac.Rights:
    count = 0 if spec.connect is None else spec.connect.replicas
    workers = [naming.connect_pod(spec.name, number) for number in range(count)]
    # A worker's REST port would also take orders: GET is all that is asked, and allowed.
    rest = [f"{pod}:{CONNECT_REST_PORT}" for pod in workers]
    return rbac.Rights(
        group="stillwater:health",
        inside=[
            rbac.may("", ["pods"], ["list"]),
            *rbac.may_get("pods/proxy", [*rbac.exporters(spec), *rest]),
            *rbac.may_get("secrets", kafka_secrets(spec, "health")),
        ],
    )


HEALTH = Definition(
    name="health",
    description="How the whole cluster does: 200, 503 or 500, and why",
    settings=Health,
    may=_may,
    kubernetes=_rights,
    # Often enough to be a second pair of eyes beside Prometheus, and less than a cent a day.
    schedule=("rate(5 minutes)", "asks how the cluster does"),
)
