"""Breaks of the functions and of the gate that answers evictions."""

from __future__ import annotations

from tests.explorer.mutant import Mutant

_M = Mutant
FUNCTIONS = (
    # The functions.
    _M(
        "version fence dropped: any tick carries an incident",
        "if stale and not is_unattended(incident, now, self.late_seconds):",
        "if stale and is_unattended(incident, now, self.late_seconds):",
        "handlers",
    ),
    _M(
        "version fence dropped: the drain",
        "if current is None or current.version != incident.version:",
        "if current is None:",
        "handlers",
    ),
    _M(
        "an old reading sends a drain",
        "        if began - now > LONGEST_TURN_SECONDS:",
        "        if began - now > 1000 * LONGEST_TURN_SECONDS:",
        "handlers",
    ),
    _M(
        "the drain is sent without its note",
        "    _begin_drain(incident, effects, now)\n    if handler is not None",
        "    if handler is not None",
        "handlers",
    ),
    _M(
        "the operator is not looked at again before a drain",
        "        _check_operator(incident, effects)\n",
        "        pass\n",
        "handlers",
    ),
    _M(
        "the operator's work keeps nobody",
        "waits = operator_refusal(incident, seen, policy) or _budget_refusal(incident, seen)",
        "waits = _budget_refusal(incident, seen)",
    ),
    _M(
        "a refused drain is sent",
        "if not forced or attempt == MOST_ATTEMPTS - 1:",
        "if forced and attempt == MOST_ATTEMPTS - 1:",
        "handlers",
    ),
    _M(
        "a refused lease drains",
        "if refusal and any(_needs_lease(a) for a in actions[position:]):",
        "if refusal and not actions:",
        "handlers",
    ),
    _M(
        "EC2 is not asked before the taint",
        "if instance is None or instance.state not in CONFIRMED:",
        "if instance is None:",
        "handlers",
    ),
    _M(
        "no next tick",
        "            self._schedule(recorded, 0.0 if joined else decision.delay_seconds or 0.0)",
        "            pass",
        "handlers",
    ),
    _M(
        "the sweep opens nothing",
        '                return "opened" if self._announce(finding, now) else "nothing"',
        '                return "nothing"',
        "handlers",
    ),
    _M(
        "the sweep wakes nobody",
        "                self.reception.wake(incident)\n                return",
        "                return",
        "handlers",
    ),
    _M(
        "a page is for the log alone",
        '    ticks.send(json.dumps({**known, "reason": reason}))',
        "    del ticks, known",
        "handlers",
    ),
    _M(
        "a page is recorded and not sent",
        "        perform(claimed, pages, self.effects, now)\n        base = claimed",
        "        base = claimed",
        "handlers",
    ),
    # A party's label.
    _M(
        "a party's drain is sent before the others' budget is counted anew",
        "    if still is not None:\n",
        "    if False:\n",
    ),
    _M(
        "a party is opened while another pod is not Ready",
        "    if away is not None:\n        # Unlabelled",
        "    if False:\n        # Unlabelled",
    ),
    _M(
        "a label outlives its lease",
        "    kept = decision.state in _OPEN_IN and held\n",
        "    kept = True\n",
    ),
    _M(
        "the sweep takes any lease for a label's",
        "lease is None or lease.node_id != pod.node_id or pod.may_leave not in going",
        "lease is None",
    ),
    _M(
        "a companion's silence is anybody's",
        "if d.refused or d.about not in away)",
        "if d.refused)",
    ),
    _M(
        "the others' budget is not counted anew",
        "{COUNTED_ANNOTATION: uuid4().hex}",
        '{COUNTED_ANNOTATION: "once"}',
        "handlers",
    ),
    # The eviction gate.
    _M(
        "the gate lets by without Kafka's consent",
        "return None if allowed else reason\n",
        "return None if allowed or reason else reason\n",
        "core/incidents",
    ),
    _M(
        "a drain of our own is let by without asking Kafka once more",
        "    if not allowed:\n        return refuse(reason, policy)\n",
        "    if not reason:\n        return refuse(reason, policy)\n",
    ),
    _M(
        "the gate lets by with a drain that could not be noted",
        "        if not begun.granted:\n",
        "        if not begun:\n",
        "handlers/eviction",
    ),
    _M(
        "the gate lets by what it does not record",
        "        self.reception.wake(self.sources.ledger.put(out))\n        return ruling",
        "        return ruling",
        "handlers/eviction",
    ),
    # A drain of our own.
    _M(
        "our own drain evicts without Kafka's consent",
        'return None if allowed else f"{still} {refusal}"',
        "return None",
    ),
    _M(
        "our own drain evicts in a pause",
        "                if not incident.urgent:\n                    _check_not_paused(effects)\n",
        "",
        "handlers",
    ),
    _M(
        "our own drain evicts without the lease",
        "                _begin_drain(incident, effects, now)\n            else:\n",
        "                pass\n            else:\n",
        "handlers",
    ),
    _M(
        "a node that stays keeps its cordon",
        "if state not in STAYS or node is None",
        "if state or node is None",
    ),
)
