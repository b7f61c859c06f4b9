"""The words of an incident's thread: what leaves, what comes next and when, how long it took.

core.slack.incident_thread puts them into messages, cli.incidents into a timeline.
"""

from __future__ import annotations

import itertools

from core.ground.words import span, time_said
from core.incidents.record import TERMINAL, Incident, State

# Plain shapes: they read the same in Slack, a terminal and a page.
_SYMBOLS = {
    State.RELEASED: "●",
    State.RIDDEN_THROUGH: "●",
    State.CANCELLED: "○",
    State.RETAINED: "▲",
    State.LOST: "▲",
}
_OUTLOOK = {
    State.OPENED: "A replacement in the same zone comes first; the node is not drained before.",
    State.REPLACING: (
        "Once the replacement is Ready with its volume driver, Kafka is asked whether this node "
        "may go."
    ),
    State.DRAINING: (
        "The node termination handler evicts the pod, which has its whole grace to stop; then its "
        "volumes detach."
    ),
    State.GATING: (
        "The instance is let go once its volumes are detached and the node is back in every ISR."
    ),
    State.RETAINED: (
        "The instance stays as it is until somebody decides: `stillwater release "
        "ENVIRONMENT {instance}` lets it go."
    ),
    State.LOST: "",
}


def symbol(state: State) -> str:
    return _SYMBOLS.get(state, "◐")


def subject(incident: Incident) -> str:
    """Name what leaves, as people speak of it: broker 10, us-east-1a."""
    place = f", {incident.zone}" if incident.zone else ""
    if incident.node_id is not None:
        return f"{incident.role or 'node'} {incident.node_id}{place}"
    return f"{incident.pool or 'instance'} {incident.instance_id}{place}"


def outlook(incident: Incident, hold_limit: float) -> str:
    """Say what will happen next and, where a time is known, when."""
    if incident.urgent and incident.open and incident.forwarded is None:
        return "AWS takes the instance within two minutes, so it is drained at once."
    if incident.state is State.HOLDING:
        latest = time_said(incident.waits_since + hold_limit)
        return f"The drain starts when Kafka can spare the node; a decision is due by {latest}."
    sentence = _OUTLOOK.get(incident.state, "").format(instance=incident.instance_id)
    if incident.due_at is not None and incident.state not in TERMINAL:
        return f"{sentence} AWS acts at {time_said(incident.due_at)}.".strip()
    return sentence


def durations(incident: Incident) -> list[str]:
    """Return one line per state the incident went through, and one for all of it."""
    lines = [
        f"{earlier.state.replace('_', ' ')}: {span(later.at - earlier.at)}"
        for earlier, later in itertools.pairwise(incident.transitions)
    ]
    if not incident.transitions:
        return lines
    return [*lines, f"in all: {span(incident.transitions[-1].at - incident.opened_at)}"]


def time_shown(moment: float) -> str:
    """Return a time that Slack shows in the reader's own zone; elsewhere it reads as UTC."""
    return f"<!date^{int(moment)}^{{date_short_pretty}} {{time_secs}}|{time_said(moment)}>"


def escape_markup(text: str) -> str:
    """Escape what Slack would read as markup; what AWS or Kafka said may mention nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
