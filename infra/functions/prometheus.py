"""Lets a function ask the Prometheus that a description names, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.cluster.operated import Operated
from core.settings.prometheus_address import PrometheusService, PrometheusWorkspace
from infra import iam
from infra.functions import rbac
from infra.functions.definition import Scope


def workspace(scope: Scope) -> list[iam.Statement]:
    """Return the right to ask a workspace; a Service is asked under RBAC."""
    address, of = scope.cluster.prometheus, scope.account
    if not isinstance(address, PrometheusWorkspace):
        return []
    place = f"{address.region}:{of.account_id}"
    arn = f"arn:{of.partition}:aps:{place}:workspace/{address.id}"
    return [iam.Statement(sid="AskPrometheus", actions=["aps:QueryMetrics"], resources=[arn])]


def service(
    cluster: Operated,
) -> tuple[Sequence[rbac.PolicyRule], Mapping[str, tuple[str, Sequence[rbac.PolicyRule]]]]:
    """Return the rights in Kafka's namespace, and elsewhere, that asking a Service takes.

    They are the proxy of one port of one Service, by GET: Prometheus is changed by POST and PUT.
    """
    asked = cluster.prometheus
    if not isinstance(asked, PrometheusService):
        return [], {}
    proxy = rbac.may_get("services/proxy", [asked.resource_name])
    if asked.namespace == cluster.namespace:
        return proxy, {}
    return [], {"prometheus": (asked.namespace, proxy)}
