"""core.timing, window and naming: defaults that agree, and names exactly as others write them."""

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cluster import Timings
from core.ground import naming
from core.ground.errors import Conflict, InvalidInput, MissingPrerequisite, StillwaterError
from core.ground.placement import heap, is_selected, quantity
from core.ground.window import DAYS, Window, start_of
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
def test_a_rule_tells_its_breakage_and_remedy_in_its_settings(rule: TimingRule) -> None:
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


HOUR = 3600.0
WEEKEND = Window(days=frozenset({"sat", "sun"}), start_minute=180, duration_minutes=120)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


THURSDAY = at("2026-11-19 12:00")
SATURDAY = at("2026-11-21 03:00")


@every_case(
    ("now", "due", "expected", "why"),
    [
        pytest.param(THURSDAY, at("2026-12-03 00:00"), SATURDAY, "opens at", id="next window"),
        pytest.param(SATURDAY, None, SATURDAY, "is open", id="on the minute it opens"),
        pytest.param(
            at("2026-11-21 04:59"), None, at("2026-11-21 04:59"), "is open", id="still open"),
        pytest.param(
            at("2026-11-21 05:00"), None, at("2026-11-22 03:00"), "opens at", id="just closed"),
        pytest.param(
            at("2026-11-22 05:00"), None, at("2026-11-28 03:00"), "opens at", id="a week away"),
        pytest.param(
            THURSDAY, at("2026-11-20 12:00"), THURSDAY, "no maintenance window", id="none in time"),
        pytest.param(THURSDAY, THURSDAY + HOUR, THURSDAY, "less than 2.0 h", id="too late"),
        pytest.param(THURSDAY, THURSDAY - HOUR, THURSDAY, "less than", id="overdue"),
        pytest.param(
            THURSDAY, SATURDAY + 2 * HOUR, SATURDAY, "opens at", id="just the margin is left"),
        pytest.param(
            THURSDAY, SATURDAY + 2 * HOUR - 1, THURSDAY, "no maintenance", id="a second less"),
    ],
)  # fmt: skip
def test_work_begins_in_the_window_or_at_once(
    now: float, due: float | None, expected: float, why: str
) -> None:
    start = start_of(due, now, WEEKEND, margin_seconds=2 * HOUR)
    assert start.at == expected
    assert why in start.reason


windows = st.builds(
    Window,
    days=st.frozensets(st.sampled_from(DAYS), min_size=1),
    start_minute=st.integers(0, 1439),
    duration_minutes=st.integers(30, 1440),
)


@given(windows, st.floats(0, 2e9), st.none() | st.floats(0, 2e9), st.floats(0, 1e5))
def test_a_start_is_in_time(window: Window, now: float, due: float | None, margin: float) -> None:
    start = start_of(due, now, window, margin_seconds=margin)
    assert start.at >= now
    assert start.at - now <= 8 * 86_400
    if due is not None:
        assert start.at <= max(now, due - margin)
    # Asked again at that moment, it begins then.
    assert start_of(due, start.at, window, margin_seconds=margin).at == start.at


@pytest.mark.parametrize(
    ("days", "start_minute", "minutes", "closed"),
    [
        ({"mon"}, 0, 1440, ((1440, 6 * 1440),)),
        (set(DAYS), 0, 1440, ()),
        ({"sun", "mon"}, 600, 1440, ((1440 + 600, 5 * 1440),)),
        ({"sun"}, 1439, 60, ((59, 7 * 1440 - 60),)),
    ],
    ids=["a day", "always", "two that touch", "over the week's end"],
)
def test_a_window_is_closed_for_the_rest_of_the_week(
    days: set[str], start_minute: int, minutes: int, closed: tuple[tuple[int, int], ...]
) -> None:
    window = Window(days=frozenset(days), start_minute=start_minute, duration_minutes=minutes)
    assert window.closed_spans() == closed


def test_one_broker_has_one_set_of_names() -> None:
    pool = naming.kafka_node_pool("broker", "us-east-1a")
    pod = naming.pod("coban", pool, 10)
    assert (pool, pod) == ("broker-a", "coban-broker-a-10")
    assert naming.claim("coban", pool, 10, 0) == "data-0-coban-broker-a-10"
    assert naming.headless_service("coban") == "coban-kafka-brokers"
    assert naming.bootstrap_service("coban") == "coban-kafka-bootstrap"
    assert (
        naming.pod_host("coban", "kafka", pod)
        == "coban-broker-a-10.coban-kafka-brokers.kafka.svc.cluster.local"
    )


@pytest.mark.parametrize(
    ("listener", "port", "bootstrap", "broker"),
    [
        pytest.param("nlb", 9094, "c-kafka-nlb-bootstrap", "c-broker-a-nlb-10", id="named"),
        # ListenersUtils: the one pair that keeps the names from before listeners had names.
        pytest.param(
            "external", 9094, "c-kafka-external-bootstrap", "c-broker-a-10", id="external-9094"),
        pytest.param("external", 9095, "c-kafka-external-bootstrap", "c-broker-a-external-10",
            id="external-elsewhere"),
    ],
)  # fmt: skip
def test_listener_services_are_named_as_strimzi_names_them(
    listener: str, port: int, bootstrap: str, broker: str
) -> None:
    assert naming.listener_bootstrap_service("c", listener, port) == bootstrap
    assert naming.listener_broker_service("c", "broker-a", 10, listener, port) == broker
    assert naming.listener_port_name(listener) == f"tcp-{listener}"


@every_case(
    ("pod", "node_id"),
    [
        pytest.param("coban-broker-a-10", 10, id="broker"),
        pytest.param("c-0", 0, id="zero"),
        pytest.param("coban-entity-operator", None, id="no-number"),
        pytest.param("coban-broker-a-", None, id="empty"),
        pytest.param("coban-broker-a-1²", None, id="a-digit-that-is-no-number"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_pod_name_tells_its_node_id(pod: str, node_id: int | None) -> None:
    assert naming.node_id_of_pod(pod) == node_id


def test_node_ids_of_zones_do_not_touch() -> None:
    zones = [naming.node_ids(10, 10, index) for index in range(3)]
    assert zones == [range(10, 20), range(20, 30), range(30, 40)]
    expected = ["[10-19]", "[20-29]", "[30-39]"]
    assert [naming.next_node_ids_annotation(ids) for ids in zones] == expected
    assert naming.next_node_ids_annotation(range(5, 6)) == "[5]"


def test_a_long_target_group_name_is_cut_and_stays_distinct() -> None:
    assert naming.target_group("prod-coban", "broker-10") == "prod-coban-broker-10"
    first = naming.target_group("production-payments-kafka", "broker-10")
    second = naming.target_group("production-payments-kafka", "broker-11")
    assert len(first) <= 32
    assert len(second) <= 32
    assert first != second


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("700m", Decimal("0.7")),
        ("107374182400000m", Decimal(100 * 1024**3)),
        ("1e3", Decimal(1000)),
        (".5Ti", Decimal(512 * 1024**3)),
        (5, Decimal(5)),
        ("1.2.3", None),
        ("100GiB", None),
        (None, None),
    ],
)
def test_a_quantity_is_read_exactly_or_not_at_all(written: object, wanted: Decimal | None) -> None:
    assert quantity(written) == wanted


def test_the_last_of_several_heaps_holds() -> None:
    assert heap("-Xms1g -Xmx2g -Xmx512m") == 512 * 1024**2
    assert heap("-XX:MaxRAMPercentage=50") is None


LABELS = {"app": "kafka", "cpu": "8", "zone": "a"}


def expression(operator: str, key: str = "cpu", *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "kafka"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        (expression("In", "zone", "a", "b"), True),
        (expression("NotIn", "zone", "a"), False),
        (expression("Exists", "zone"), True),
        (expression("DoesNotExist", "zone"), False),
        (expression("Gt", "cpu", "4"), True),
        (expression("Lt", "cpu", "4"), False),
        (expression("Gt", "app", "4"), False),
        (expression("AnotherDay"), True),
    ],
)
def test_a_selector_takes_whom_it_says_and_nobody_by_a_label_that_is_no_number(
    selector: dict[str, Any] | None, wanted: bool
) -> None:
    assert is_selected(LABELS, selector) is wanted


@pytest.mark.parametrize("kind", [InvalidInput, MissingPrerequisite, Conflict])
def test_every_error_is_of_the_family(kind: type[Exception]) -> None:
    assert issubclass(kind, StillwaterError)
