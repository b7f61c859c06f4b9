"""`stillwater zones`, `zones freeze`, `zones thaw`: the zones' incidents, for people.

A wish is one conditional write of the incidents' document and one turn of λ tick, which moves
leaders and protection.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.target import Cluster, readable_ledger
from cli.terminal import moment_of, say
from core.cluster import ClusterSpec
from core.ground.errors import InvalidInput
from core.ground.fields import zone_id_in
from core.ground.words import span, time_said
from core.zones.incident import LONGEST_SILENCE_SECONDS, PERSON, ZoneIncident, freezes_in_force
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_MESSAGE


def show_zones(environment: str, console: Console, *, closed: bool, as_json: bool) -> None:
    """List the zones' incidents: the open ones, or all that are remembered."""
    with readable_ledger():
        cluster = Cluster.named(environment)
        found = [i for i in _freezes(cluster).incidents() if i.open or closed]
    found.sort(key=lambda incident: incident.opened_at)
    if as_json:
        for incident in found:
            print(json.dumps(asdict(incident)))  # noqa: T201
        return
    console.print(table(found, time.time()))


def freeze(environment: str, zone: str, until: str, because: str, console: Console) -> None:
    """Freeze a zone until a moment, whatever AWS says of it."""
    now = time.time()
    ends = moment_of(until, now)
    longest = LONGEST_SILENCE_SECONDS[PERSON]
    if not now < ends <= now + longest:
        raise InvalidInput(
            [f"--until {until!r} is not within {longest / 86_400:.0f} days from now; write 4h."]
        )
    with readable_ledger():
        cluster = Cluster.named(environment)
        zone_id, name = _zone_names(cluster, zone)
        freezes = _freezes(cluster)
        elsewhere = {f.zone for f in freezes.current(now)} - {name}
        if not pool_zones(cluster.own_spec) - elsewhere - {name}:
            others = ", ".join(sorted(z for z in elsewhere if z)) or "none is frozen"
            problem = (
                f"Zone {name} is the last zone of {cluster.spec.name} that is not frozen; thaw "
                f"another first: {others}."
            )
            raise InvalidInput([problem])
        freezes.freeze(zone_id, name, now, ends, cluster.actor, because)
        cluster.send_tick(SHIFT_MESSAGE)
    say(
        console,
        f"Zone {name} ({zone_id}) is frozen until {time_said(ends)}. Its leaders move away now.",
    )


def thaw(environment: str, zone: str, because: str, console: Console) -> None:
    """Thaw a zone: every incident that keeps it frozen is over, whatever AWS goes on saying."""
    now = time.time()
    with readable_ledger():
        cluster = Cluster.named(environment)
        zone_id, name = _zone_names(cluster, zone)
        freezes = _freezes(cluster)
        before = {i.key for i in freezes.incidents() if i.open}
        after = freezes.thaw(zone_id, now, cluster.actor, because)
        ended = [i for i in after if not i.open and i.key in before]
        if not ended:
            raise InvalidInput([f"No incident of zone {name} ({zone_id}) is open: nothing to do."])
        cluster.send_tick(SHIFT_MESSAGE)
        left = [f.source for f in freezes_in_force(after, now) if f.zone == name]
    said = f"Zone {name} ({zone_id}) is thawed: {len(ended)} ended."
    say(console, f"{said} Still frozen by {', '.join(left)}." if left else said)


def table(incidents: Sequence[ZoneIncident], now: float) -> Table:
    """Return one row per incident, the oldest first."""
    found = Table(
        "zone", "state", "by", "for", "ends", "why", caption=None if incidents else "No incident."
    )
    for incident in incidents:
        zone = incident.zone or incident.zone_id or ", ".join(incident.zone_ids) or "none named"
        found.add_row(
            Text(zone),
            incident.state.value,
            Text(incident.owner or incident.source),
            span(now - incident.opened_at),
            "" if incident.until is None else time_said(incident.until),
            Text(incident.reason),
        )
    return found


def pool_zones(spec: ClusterSpec) -> set[str]:
    """Return the names of the zones that a cluster's pools stand in."""
    return {zone for pool in spec.pools for zone in spec.zones_of(pool)}


def _zone_names(cluster: Cluster, said: str) -> tuple[str, str]:
    """Return a zone's id and this account's name for it, from either."""
    answer = cluster.client("ec2").describe_availability_zones(AllAvailabilityZones=True)
    names: Mapping[str, str] = {z["ZoneId"]: z["ZoneName"] for z in answer["AvailabilityZones"]}
    ours = {id_: name for id_, name in names.items() if name in pool_zones(cluster.own_spec)}
    wanted = zone_id_in(said) or said.strip().lower()
    for zone_id, name in ours.items():
        if wanted in {zone_id, name}:
            return zone_id, name
    known = ", ".join(f"{name} ({zone_id})" for zone_id, name in sorted(ours.items()))
    raise InvalidInput([f"{said!r} is not a zone of {cluster.spec.name}, which stands in {known}."])


def _freezes(cluster: Cluster) -> Freezes:
    return Freezes(cluster.records, cluster.spec.name)
