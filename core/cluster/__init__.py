"""ClusterSpec: the one validated description of a cluster, from which every stack is rendered.

The only package of core that imports pydantic. Lambda code never imports it: infra renders the few
values a handler needs into its environment.
"""

from core.cluster.addresses import Route, routes
from core.cluster.kafka import Acl, ClientProbe, Connect, Metrics, Probe, Topic, User
from core.cluster.network import ExistingNetwork
from core.cluster.nodes import Kubernetes, NodePool, Snapshots, Storage
from core.cluster.operation import Alerts, Maintenance, Slack, Timings
from core.cluster.reading import parse
from core.cluster.spec import ClusterSpec
from core.health.node import Role

__all__ = [
    "Acl",
    "Alerts",
    "ClientProbe",
    "ClusterSpec",
    "Connect",
    "ExistingNetwork",
    "Kubernetes",
    "Maintenance",
    "Metrics",
    "NodePool",
    "Probe",
    "Role",
    "Route",
    "Slack",
    "Snapshots",
    "Storage",
    "Timings",
    "Topic",
    "User",
    "parse",
    "routes",
]
