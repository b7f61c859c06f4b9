"""Breaks of the functions and of the gate that answers evictions."""

from __future__ import annotations

from tests.explorer.mutant import Mutant

_M = Mutant
FUNCTIONS = (
    # The functions.
    _M(
        "version fence dropped: any tick carries an incident",
        "handlers",
        "if stale and not is_unattended(incident, now, self.late_seconds):",
        "if stale and is_unattended(incident, now, self.late_seconds):",
    ),
    _M(
        "version fence dropped: the drain",
        "handlers",
        "if current is None or current.version != incident.version:",
        "if current is None:",
    ),
    _M(
        "an old reading sends a drain",
        "handlers",
        "        if began - now > LONGEST_TURN_SECONDS:",
        "        if began - now > 1000 * LONGEST_TURN_SECONDS:",
    ),
    _M(
        "the drain is sent without its note",
        "handlers",
        "    _begin_drain(incident, effects, now)\n    if handler is not None",
        "    if handler is not None",
    ),
    _M(
        "the operator is not looked at again before a drain",
        "handlers",
        "        _check_operator(incident, effects)\n",
        "        pass\n",
    ),
    _M(
        "the operator's work keeps nobody",
        "core",
        "waits = operator_refusal(incident, seen, policy) or _budget_refusal(incident, seen)",
        "waits = _budget_refusal(incident, seen)",
    ),
    _M(
        "a refused drain is sent",
        "handlers",
        "if not forced or attempt == MOST_ATTEMPTS - 1:",
        "if forced and attempt == MOST_ATTEMPTS - 1:",
    ),
    _M(
        "a refused lease drains",
        "handlers",
        "if refusal and any(_needs_lease(a) for a in actions[position:]):",
        "if refusal and not actions:",
    ),
    _M(
        "EC2 is not asked before the taint",
        "handlers",
        "if instance is None or instance.state not in CONFIRMED:",
        "if instance is None:",
    ),
    _M(
        "no next tick",
        "handlers",
        "            self._schedule(recorded, 0.0 if joined else decision.delay_seconds or 0.0)",
        "            pass",
    ),
    _M(
        "the sweep opens nothing",
        "handlers",
        '                return "opened" if self._announce(finding, now) else "nothing"',
        '                return "nothing"',
    ),
    _M(
        "the sweep wakes nobody",
        "handlers",
        "                self.reception.wake(incident)\n                return",
        "                return",
    ),
    _M(
        "a page is for the log alone",
        "handlers",
        '    ticks.send(json.dumps({**known, "reason": reason}))',
        "    del ticks, known",
    ),
    _M(
        "a page is recorded and not sent",
        "handlers",
        "        perform(claimed, pages, self.effects, now)\n        base = claimed",
        "        base = claimed",
    ),
    # A party's label.
    _M(
        "a party's drain is sent before the others' budget is counted anew",
        "core",
        "    if still is not None:\n",
        "    if False:\n",
    ),
    _M(
        "a party is opened while another pod is not Ready",
        "core",
        "    if away is not None:\n        # Unlabelled",
        "    if False:\n        # Unlabelled",
    ),
    _M(
        "a label outlives its lease",
        "core",
        "    kept = decision.state in _OPEN_IN and held\n",
        "    kept = True\n",
    ),
    _M(
        "the sweep takes any lease for a label's",
        "core",
        "lease is None or lease.node_id != pod.node_id or pod.may_leave not in going",
        "lease is None",
    ),
    _M(
        "a companion's silence is anybody's",
        "core",
        "if d.refused or d.about not in away)",
        "if d.refused)",
    ),
    _M(
        "the others' budget is not counted anew",
        "handlers",
        "{COUNTED_ANNOTATION: uuid4().hex}",
        '{COUNTED_ANNOTATION: "once"}',
    ),
    # The eviction gate.
    _M(
        "the gate lets by without Kafka's consent",
        "core/incidents",
        "return None if allowed else reason\n",
        "return None if allowed or reason else reason\n",
    ),
    _M(
        "a drain of our own is let by without asking Kafka once more",
        "core",
        "    if not allowed:\n        return refuse(reason, policy)\n",
        "    if not reason:\n        return refuse(reason, policy)\n",
    ),
    _M(
        "the gate lets by with a drain that could not be noted",
        "handlers/eviction",
        "        if not begun.granted:\n",
        "        if not begun:\n",
    ),
    _M(
        "the gate lets by what it does not record",
        "handlers/eviction",
        "        self.reception.wake(self.sources.ledger.put(out))\n        return ruling",
        "        return ruling",
    ),
    # A drain of our own.
    _M(
        "our own drain evicts without Kafka's consent",
        "core",
        'return None if allowed else f"{still} {refusal}"',
        "return None",
    ),
    _M(
        "our own drain evicts in a pause",
        "handlers",
        "                if not incident.urgent:\n                    _check_not_paused(effects)\n",
        "",
    ),
    _M(
        "our own drain evicts without the lease",
        "handlers",
        "                _begin_drain(incident, effects, now)\n            else:\n",
        "                pass\n            else:\n",
    ),
    _M(
        "a node that stays keeps its cordon",
        "core",
        "return (Uncordon(node.name),) if stays and",
        "return () if stays and",
    ),
)
