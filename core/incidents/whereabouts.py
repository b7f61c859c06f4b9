"""Says what is on an incident's own machine, as its Node's name alone does not.

A Node is called by its machine's address. Once EC2 has ended the machine, the next one may get
that address, and with it the name, the broker and its volume.
"""

from __future__ import annotations

from core.incidents.observation import Observation, PodView
from core.incidents.record import Incident


def pod_there(incident: Incident, pod: PodView | None, seen: Observation) -> bool:
    """Say whether a pod is on the incident's own machine."""
    if pod is None or pod.node_name is None or pod.node_name != incident.node_name:
        return False
    return not _of_another(pod.node_name, incident, seen)


def attached_there(
    incident: Incident, seen: Observation, name: str | None = None
) -> tuple[str, ...]:
    """Return the volumes that Kubernetes has attached to the incident's own machine.

    `name` is the one of its Node, where the incident never learned it.
    """
    node_name = name or incident.node_name or ""
    return () if _of_another(node_name, incident, seen) else seen.attachments.get(node_name, ())


def _of_another(node_name: str, incident: Incident, seen: Observation) -> bool:
    """Say whether another machine's Node has a name by now."""
    node = seen.node_named(node_name)
    return node is not None and node.instance_id not in {None, incident.instance_id}
