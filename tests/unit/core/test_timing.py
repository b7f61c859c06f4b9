"""core.timing: the defaults agree, every rule can be broken, and raising a limit never hurts it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.cluster import Timings
from core.timing import FACTS, RULES, TimingRule, check
from tests.every_case import every_case

DEFAULTS = {name: field.default for name, field in Timings.model_fields.items()}


def spec(**changed: int) -> Any:
    """A ClusterSpec as far as timing looks; values that pydantic would refuse are welcome."""
    return SimpleNamespace(timings=SimpleNamespace(**{**DEFAULTS, **changed}))


def settings_of(formula: str) -> frozenset[str]:
    """Return the settings a formula reads, without numbers and facts."""
    names = {factor for term in formula.split(" + ") for factor in term.split(" * ")}
    return frozenset(name for name in names if not name.isdigit() and name not in FACTS)


def broken(**changed: int) -> dict[str, str]:
    return {violation.rule: violation.sentence for violation in check(spec(**changed))}


def test_the_default_timings_agree() -> None:
    assert check(SimpleNamespace(timings=Timings())) == []


def test_every_rule_reads_settings_that_exist() -> None:
    read = {
        name for rule in RULES for side in (rule.left, rule.right) for name in settings_of(side)
    }
    assert read <= set(DEFAULTS)


# One way to break each rule, and the words its sentence must hold.
BREAKING: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
    ("controlled-shutdown-fits-grace", {"pod_grace_seconds": 180}, ("300 s", "180 s", "by 120 s")),
    ("grace-fits-drain", {"nth_drain_timeout_seconds": 120}, ("330 s", "120 s", "by 210 s")),
    ("grace-fits-node-shutdown", {"node_shutdown_seconds": 330}, ("360 s", "330 s", "by 30 s")),
    ("drain-fits-hook", {"hook_heartbeats": 2}, ("hook_heartbeats", "1800 s")),
    ("hold-fits-margin", {"planned_margin_seconds": 7200}, ("16620 s", "7200 s")),
    ("hook-total-within-aws", {"hook_heartbeat_timeout_seconds": 7200}, ("172800 s", "48 h")),
    ("hook-beats-within-aws", {"hook_heartbeats": 101}, ("100 x hook_heartbeat", "by 900 s")),
    ("tick-fits-heartbeat", {"tick_interval_seconds": 55}, ("equals it", "one lost tick")),
    ("sweep-fits-heartbeat", {"hook_heartbeat_timeout_seconds": 420}, ("equals it", "the sweep")),
    ("events-outlive-hold", {"events_queue_retention_seconds": 3600}, ("16620 s", "3600 s")),
    ("nth-messages-outlive-drain", {"nth_queue_retention_seconds": 300}, ("300 s", "NTH")),
    (
        "nth-messages-end-before-hold",
        {"nth_queue_retention_seconds": 172_800},
        ("173810 s", "kept while NTH"),
    ),
    ("drain-fits-receives", {"nth_max_receive_count": 3}, ("330 s", "dead-letter")),
    ("lambda-fits-visibility", {"lambda_timeout_seconds": 61}, ("366 s", "by 6 s")),
    ("health-timeout-fits-interval", {"nlb_health_timeout_seconds": 10}, ("10 s", "by 5 s")),
    ("registration-fits-operation", {"nlb_registration_seconds": 590}, ("600 s", "equals it")),
    ("backoff-fits-operation", {"lbc_max_backoff_seconds": 1000}, ("1310 s", "by 710 s")),
    ("requeue-within-backoff", {"lbc_max_backoff_seconds": 4}, ("5 s", "4 s")),
    ("requeue-within-health", {"lbc_requeue_seconds": 15}, ("15 s", "10 s")),
    ("broker-idle-within-nlb", {"broker_connections_max_idle_seconds": 600}, ("by 250 s",)),
    ("client-idle-within-nlb", {"client_connections_max_idle_seconds": 540}, ("by 190 s",)),
    ("heartbeat-fits-session", {"broker_heartbeat_interval_seconds": 5}, ("10 s", "by 1 s")),
    ("hold-outlasts-session", {"post_condition_hold_seconds": 9}, ("equals it", "freezes")),
    ("hold-fits-wait", {"post_condition_wait_seconds": 20}, ("by 10 s",)),
    ("connect-health-fits-probe", {"connect_probe_timeout_seconds": 5}, ("10 s", "by 5 s")),
]


@every_case(("rule", "changed", "words"), BREAKING, ids=[b[0] for b in BREAKING])
def test_a_broken_rule_names_both_settings_the_gap_and_the_remedy(
    rule: str, changed: dict[str, int], words: tuple[str, ...]
) -> None:
    sentence = broken(**changed)[rule]
    for word in (*words, *changed):
        assert word in sentence
    assert sentence.endswith(".")


def test_every_rule_has_a_way_to_break_it_above() -> None:
    assert [rule.name for rule in RULES] == [name for name, _, _ in BREAKING]


@every_case("rule", RULES, ids=[rule.name for rule in RULES])
def test_a_rule_tells_its_breakage_and_its_remedy_in_words_of_its_settings(
    rule: TimingRule,
) -> None:
    assert any(name in rule.remedy for name in settings_of(rule.left) | settings_of(rule.right))
    assert rule.breaks[-1] not in ".;"


settings = st.fixed_dictionaries({name: st.integers(1, 20_000) for name in DEFAULTS})


@given(settings, st.sampled_from(RULES), st.integers(1, 100_000), st.data())
def test_raising_a_limit_never_adds_a_violation_of_that_limit(
    drawn: dict[str, int], rule: TimingRule, more: int, data: st.DataObject
) -> None:
    limits = sorted(settings_of(rule.right))
    if not limits:
        assert rule.right in FACTS
        return
    raised = data.draw(st.sampled_from(limits))
    before = broken(**drawn)
    after = broken(**{**drawn, raised: drawn[raised] + more})
    assert rule.name in before or rule.name not in after


@given(settings)
def test_a_violation_always_disagrees_the_way_it_says(drawn: dict[str, int]) -> None:
    for violation in check(spec(**drawn)):
        assert violation.left_value >= violation.right_value
        assert (violation.left_value > violation.right_value) or violation.relation == "below"
