"""Breaks of core/ and handlers/, each of which the unit tests or the explorer must notice.

A mutant names its place by what stands there: a snippet that is found once in its package, whatever
module it lives in by now. A snippet that is gone, or stands twice, is an error that says so.
`python -m tests.explorer.mutants NAME` runs the explorer over one mutant; pytest loads it with
`-p tests.explorer.mutants` and STILLWATER_MUTANT.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from tests.explorer.mutant import Mutant
from tests.explorer.mutants_of_functions import FUNCTIONS
from tests.explorer.mutants_of_orders import ORDERS
from tests.explorer.mutants_of_words import WORDS

ROOT = Path(__file__).parents[2]


def located(mutant: Mutant) -> Path:
    """Return the module a mutant changes; LookupError unless exactly one holds its snippet once."""
    holders = [
        (path, count)
        for path in sorted((ROOT / mutant.package).rglob("*.py"))
        if (count := path.read_text().count(mutant.snippet))
    ]
    if len(holders) != 1 or holders[0][1] != 1:
        places = ", ".join(f"{path.relative_to(ROOT)} ({count}x)" for path, count in holders)
        raise LookupError(
            f"Mutant {mutant.name!r}: its snippet must stand once in {mutant.package}/, and stands "
            f"in {places or 'no module'}; give it the words that are there now."
        )
    return holders[0][0]


def load(name: str) -> None:
    """Have every later import read the mutant in place of its module."""
    mutant = BY_NAME[name]
    path = located(mutant)
    source = path.read_text().replace(mutant.snippet, mutant.instead)
    changed = compile(source, str(path), "exec")
    real = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        found: CodeType | None = changed if loader.path == str(path) else real(loader, fullname)
        return found

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


_M = Mutant
MUTANTS = (
    # The loop's decisions.
    _M(
        "lease not renewed while blind",
        "seen.blind, *page, *(lease_renewal(incident) if drained else ()))",
        "seen.blind, *page)",
    ),
    _M(
        "frozen zone's patience ignored",
        "return bool(held or seen.paused or frozen)",
        "return bool(held or seen.paused)",
    ),
    _M(
        "a person's hold has no patience",
        "return bool(held or seen.paused or frozen)",
        "return bool(seen.paused or frozen)",
    ),
    _M(
        "a stopping instance taken as stopped",
        'STOPPED = frozenset({"stopped", "terminated", None})',
        'STOPPED = frozenset({"stopped", "stopping", "terminated", None})',
    ),
    _M(
        "an ending instance is stopped",
        'ENDING = frozenset({"shutting-down", "terminated", None})',
        'ENDING = frozenset({"terminated", None})',
    ),
    _M(
        "effects swapped: the drain before the lease",
        "sent = go(State.DRAINING, reason, TakeLease(), ForwardDrain())",
        "sent = go(State.DRAINING, reason, ForwardDrain(), TakeLease())",
    ),
    _M(
        "the reading is not made again with the lease held",
        "        step = stay(incident, policy, "
        'f"{reason} Taking the lease.", TakeLease(), delay=0)',
        "        return _let_go(incident, seen, policy, reason)",
    ),
    _M(
        "drains of others are forgotten",
        "    if waits is not None:\n        return waits\n    blocked",
        "    blocked",
    ),
    _M(
        "a lease in the way is no hindrance",
        "    if seen.lease_holder not in {None, incident.id}:\n        reason",
        "    if seen.lease_holder is None:\n        reason",
    ),
    _M(
        "Kafka's consent is not asked",
        "    if not allowed:\n        told = _waits_long(incident, seen, policy, reason)",
        "    if not allowed and not incident.node_id:\n"
        "        told = _waits_long(incident, seen, policy, reason)",
    ),
    _M(
        "Kafka's silence is consent",
        "        return False, seen.kafka_silence",
        "        return True, seen.kafka_silence",
    ),
    _M(
        "no replacement is waited for",
        "    if none_will_come(incident, seen):\n        return _scaled_in(",
        "    return go(State.HOLDING, 'none')\n    if none_will_come(incident, seen):\n"
        "        return _scaled_in(",
    ),
    _M("no hold limit", "    if patient and held <= last:\n", "    if patient or held <= last:\n"),
    _M(
        "heartbeats at their timeout",
        "return seen.now - last >= policy.heartbeat_timeout_seconds / 2",
        "return seen.now - last >= policy.heartbeat_timeout_seconds * 2",
    ),
    _M(
        "one hook gets no heartbeat",
        "actions = (Heartbeat(DRAIN_HOOK), Heartbeat(GATE_HOOK), *actions)",
        "actions = (Heartbeat(DRAIN_HOOK), *actions)",
    ),
    _M(
        "a page for every turn",
        "if not (isinstance(a, Page) and a.key in incident.pages)",
        "if not (isinstance(a, Page) and a.key in ())",
    ),
    _M(
        "retained without a page",
        "told, Page(key, told), *complete(incident, HookResult.ABANDON),",
        "told, *complete(incident, HookResult.ABANDON),",
    ),
    _M(
        "retained by CONTINUE",
        "*complete(incident, HookResult.ABANDON),",
        "*complete(incident, HookResult.CONTINUE),",
    ),
    _M(
        "what the group retains goes unseen",
        "if seen.lifecycle_state == RETAINED and incident.release is None and hooked:",
        "if seen.lifecycle_state == 'nothing' and incident.release is None and hooked:",
    ),
    _M(
        "a drain has no limit",
        "    if seen.now - incident.entered_at > policy.hold_limit_seconds:\n"
        "        return retain(\n",
        "    if seen.now - incident.entered_at > 1000 * policy.hold_limit_seconds:\n"
        "        return retain(\n",
    ),
    _M(
        "a drain is sent again at every look",
        "if waited <= policy.forward_again_seconds or sent is None:",
        "if sent is None:",
    ),
    _M(
        "sent again without consent",
        "elif not (allowed or incident.urgent):",
        "elif not (allowed or incident.node_id):",
    ),
    # The gate.
    _M(
        "the gate ignores the pod",
        'return f"Pod {pod.name} is still on',
        'f"Pod {pod.name} is still on',
    ),
    _M(
        "the gate ignores volumes of Kubernetes",
        "    if attached and (seen.volumes or away is not None):",
        "    if attached and not attached:",
    ),
    _M(
        "the gate ignores volumes of EC2",
        '    if seen.volumes:\n        return f"EC2 has not yet',
        '    if seen.volumes and not seen.volumes:\n        return f"EC2 has not yet',
    ),
    _M(
        "the gate ignores the broker's return",
        "_still_away(incident, seen, policy) if incident.expects_return else None",
        "None",
    ),
    _M("Ready is back", "    return not_back(incident, seen, policy)\n", "    return None\n"),
    _M("back at once", "    if held_seconds < hold_seconds:", "    if held_seconds < 0:"),
    _M(
        "released before the group shows it",
        "    waits = _not_gone(incident, seen, policy)\n    if waits:\n        return waits\n",
        "",
    ),
    # The lease.
    _M(
        "the lease is given to anybody",
        "refusal = None if out else _refusal(others, holder, party, now)",
        "refusal = None",
    ),
    _M(
        "a used lease lapses",
        "lease for lease in leases if lease.out_at is not None or now < lease.expires_at",
        "lease for lease in leases if now < lease.expires_at",
    ),
    _M(
        "a lapsed lease is used",
        "if refusal is None and mine is None and not forced:",
        "if refusal is None and mine is None and not holder:",
    ),
    _M(
        "a used lease is given back unseen",
        "lease for lease in leases if lease.holder != holder or lease.out_at is not None",
        "lease for lease in leases if lease.holder != holder",
    ),
    _M("a standing drain ends at once", "return ends if seen.now < ends else None", "return None"),
    _M(
        "a pause keeps nobody",
        "    if seen.paused:\n        return seen.paused\n    if (until := incident.held_to",
        "    if (until := incident.held_to",
    ),
    # Kafka's consent.
    _M(
        "a fenced broker beside is no hindrance",
        "for other in sorted(cluster.out - leaving):",
        "for other in sorted(cluster.out & leaving):",
    ),
    _M(
        "one replica in sync is enough",
        "    return left < needed_in_sync(partition, isr_margin)",
        "    return left < 1",
    ),
    _M(
        "a quorum without a leader consents",
        "    if cluster.lacks_quorum:\n        # A broker told to stop",
        "    if False:\n        # A broker told to stop",
    ),
    # What is remembered.
    _M(
        "any transition is allowed",
        "decision.state is not incident.state and decision.state not in ALLOWED[incident.state]",
        "False",
    ),
    _M(
        "a page is forgotten",
        "pages=incident.pages + tuple(a.key for a in decision.actions if isinstance(a, Page)),",
        "pages=incident.pages,",
    ),
    _M(
        "an announcement twice is two",
        "if interruption.dedupe_key in incident.announcements or not incident.open:",
        "if not incident.open:",
    ),
    _M(
        "what is gone is announced again",
        "return not (gone or known or unwanted)",
        "return not (known or unwanted)",
    ),
    _M(
        "nobody is ever unattended",
        "return incident.open and now - expected > late_seconds",
        "return incident.open and now - expected > 1000 * late_seconds",
    ),
    _M(
        "where the pod stood is learnt after the drain, too",
        "if incident.forwarded is None and incident.state not in {State.DRAINING, State.GATING}:",
        "if True:",
    ),
    _M(
        "silence of Kafka starts the return again",
        "return replace(incident, broker_back_at=incident.broker_back_at or seen.now)",
        "return replace(incident, broker_back_at=incident.broker_back_at or 0.0)",
    ),
    _M(
        "the sweep sees nobody in hooks",
        '_WAITING = frozenset({"Terminating:Wait", RETAINED})',
        "_WAITING = frozenset[str]()",
    ),
    _M(
        "a machine that may run is tainted",
        "    if seen.ec2_state not in CONFIRMED:\n        return ()",
        "    if seen.ec2_state in CONFIRMED:\n        return ()",
    ),
    _M(
        "a drain in place that may come again is over",
        "return sent is not None and sent.times == 1 and sent.reported_at is not None",
        "return True",
    ),
    _M(
        "a node in place takes pods before its machine has booted",
        "if node is None or node.boot_id in {None, place.boot_id}:",
        "if node is None:",
    ),
    *FUNCTIONS,
    *WORDS,
    *ORDERS,
)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


def hunted(name: str, walks: int) -> list[str]:
    """Return the rules that the explorer sees broken in a mutant; nothing was imported before."""
    load(name)
    from tests.explorer.hunt import broken  # noqa: PLC0415 - reads the mutant

    return broken(walks)


if name_ := os.environ.get("STILLWATER_MUTANT"):
    load(name_)

if __name__ == "__main__":
    sys.stdout.write("\n".join(hunted(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 300)))
