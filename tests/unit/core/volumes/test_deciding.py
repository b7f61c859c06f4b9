"""core.volumes.deciding: what becomes of a set of volumes, with its reason and its price."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from core.cost import pricing
from core.volumes.deciding import DecisionKind, VolumeDecision, decide, plan
from core.volumes.growth import payback, smaller
from core.volumes.sizing import GIB, MIB, Gp3, Performance, Policy
from core.volumes.views import (
    BrokerAbsence,
    FillForecast,
    History,
    Load,
    ModificationState,
    Trouble,
    VolumeSet,
)
from tests.every_case import every_case
from tests.unit.core.volumes.views import (
    DAY,
    FAST,
    HOUR,
    NOW,
    ended_modification,
    fill_forecast,
    history,
    quiet_hours,
    throttled_load,
    view,
    volume_set,
)

BOOK = pricing.book("us-east-1")


def first(of: VolumeSet) -> VolumeDecision:
    return decide(of, BOOK, NOW)[0]


FULL = view(forecast=fill_forecast(0.99))
QUIET = view(FAST, load=Load(hours=quiet_hours(26)))
THROTTLED = view(load=throttled_load())
FASTEST = Gp3(100, Performance(12_000, 298))
USED = history(*(ended_modification(h * HOUR) for h in (23, 10, 5, 2)))
SHORT = replace(THROTTLED, load=throttled_load(0.5, instance=0.5), instance_type="r7g.xlarge")
JUST_RAISED = history(ended_modification(HOUR / 2, FAST, kind="raise", original=Gp3(100)))
# A set => what becomes of it, what refuses more, and the words that say so.
VERDICTS: dict[str, tuple[VolumeSet, DecisionKind, str, tuple[str, ...]]] = {
    "room and speed": (volume_set(), DecisionKind.KEEP, "", ()),
    "full in a fortnight": (volume_set(view(forecast=fill_forecast(0.4, per_day_gib=3))),
        *(DecisionKind.KEEP, "", ())),
    "a fifth modification in 24 hours": (volume_set(replace(FULL, history=USED)),
        *(DecisionKind.WAIT, "slots", ("shorten the retention",))),
    "a history that is not known": (volume_set(replace(FULL, history=History())),
        *(DecisionKind.WAIT, "slots", ())),
    "the worst volume of a set": (volume_set(FULL, view(history=USED)),
        *(DecisionKind.WAIT, "slots", ())),
    "frozen": (volume_set(FULL, frozen="audit until Friday"),
        *(DecisionKind.WAIT, "frozen", ("audit until Friday",))),
    "the policy's largest": (volume_set(FULL, policy=Policy(apply=True, largest_gib=100)),
        *(DecisionKind.ADVISE, "ceiling", ("add a volume, or add a broker",))),
    "an instance that is throttled": (volume_set(SHORT), *(DecisionKind.REFUSE, "instance"),
        ("r7g.xlarge sustains 6000 IOPS and 149 MiB/s", "m7g.2xlarge sustains 12000 and 298")),
    "as fast as its instance": (volume_set(view(FASTEST, load=throttled_load()), asked=FASTEST),
        *(DecisionKind.REFUSE, "instance", ())),
    "others of its node take their share": (volume_set(THROTTLED, beside=(Performance(9000, 173),)),
        *(DecisionKind.REFUSE, "instance", ())),
    "the policy's fastest": (
        volume_set(THROTTLED, policy=Policy(apply=True, ceiling=Performance(3000, 125))),
        *(DecisionKind.REFUSE, "ceiling", ("max_throughput_mib_per_s",))),
    "a class that does not exist": (volume_set(THROTTLED, classes=frozenset({Performance()})),
        *(DecisionKind.WAIT, "class-missing", ("run `stillwater up`",))),
    "quiet at its spec": (volume_set(QUIET, asked=FAST, spec=FAST), *(DecisionKind.KEEP, "", ())),
    "hours that nobody measured": (
        volume_set(view(FAST, load=Load(hours=quiet_hours(20))), asked=FAST),
        *(DecisionKind.KEEP, "", ())),
    "quiet with one slot left": (
        volume_set(
            replace(QUIET, history=history(*(ended_modification(h * HOUR) for h in (23, 10, 5)))),
            asked=FAST), *(DecisionKind.WAIT, "slots", ())),
    "raised just now": (
        volume_set(view(FAST, load=throttled_load(), history=JUST_RAISED), asked=FAST),
        *(DecisionKind.KEEP, "", ())),
}  # fmt: skip


@every_case(("of", "kind", "refused_by", "words"), VERDICTS.values(), ids=VERDICTS)
def test_a_set_is_judged_and_its_refusal_named(
    of: VolumeSet, kind: DecisionKind, refused_by: str, words: tuple[str, ...]
) -> None:
    found = first(of)
    assert (found.kind, found.refused_by) == (kind, refused_by)
    assert [each for each in words if each not in found.reason] == []


def test_a_volume_that_fills_within_days_grows_for_two_weeks() -> None:
    found = first(volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8))))
    assert found.kind is DecisionKind.GROW
    # (70 + 14 x 8) / 0.85, in tens.
    assert found.target == Gp3(220)
    assert found.monthly_usd_change == Decimal("9.60")
    assert not found.emergency
    assert "in 45 h and is full in 4 days (70.0 GiB used, +8.0 GiB a day)" in found.reason


def test_a_full_volume_in_its_cooldown_names_both_ways_out_with_figures() -> None:
    filled = replace(FULL, history=USED, instance_type="r7g.xlarge")
    found = first(volume_set(filled, replace(filled, volume_id="vol-2")))
    # Two volumes with 99 GiB each and 20 % to be free: 198 / 80 is three brokers. The third gets a
    # third of 198 GiB, at half of 125 MiB/s, for 730 x 0.2142 and its 100 GiB at 0.08.
    assert re.search(
        r"Wait until .+ UTC, shorten the retention of its largest topics, or raise nodes_per_zone "
        r"by 1 and run `stillwater grow`: 66 GiB move in each zone, in 0\.3 h, for \$164\.37 a "
        r"month in each zone",
        found.reason,
    ), found.reason


def test_the_last_slot_is_kept_for_an_emergency() -> None:
    used = history(
        ended_modification(20 * HOUR), ended_modification(10 * HOUR), ended_modification(5 * HOUR)
    )
    found = first(volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8), history=used)))
    assert (found.kind, found.refused_by) == (DecisionKind.WAIT, "slots")
    assert found.until == NOW + 4 * HOUR + 120
    assert "1 of 4 modifications in 24 hours are left" in found.reason
    urgent = first(volume_set(view(forecast=fill_forecast(0.95), history=used)))
    assert urgent.kind is DecisionKind.GROW
    assert first(volume_set(replace(FULL, history=USED))).emergency


@pytest.mark.parametrize(
    "state",
    [ModificationState.REQUESTED, ModificationState.MODIFYING, ModificationState.OPTIMIZING],
)
def test_nothing_starts_while_a_modification_is_under_way(state: ModificationState) -> None:
    found = first(
        volume_set(
            view(
                forecast=fill_forecast(0.99),
                history=history(ended_modification(HOUR / 2, state=state)),
            )
        )
    )
    assert found.kind is DecisionKind.WAIT
    assert found.refused_by in {"under-way", "not-applied"}


def test_a_spec_that_asks_for_more_is_followed() -> None:
    spec = Gp3(300, Performance(4000, 250))
    found = first(volume_set(spec=spec))
    assert found.kind is DecisionKind.GROW
    assert found.target == spec


def test_a_throttled_volume_is_raised_by_half_or_more() -> None:
    found = first(volume_set(view(load=throttled_load(iops_p999=800, bytes_per_s_p999=124 * MIB))))
    assert found.kind is DecisionKind.RAISE
    assert found.target == Gp3(100, Performance(3000, 250))
    assert found.monthly_usd_change == Decimal("5.00")
    assert "3000 IOPS and 125 MiB/s 50% of the time" in found.reason


def test_a_volume_short_of_iops_gets_iops() -> None:
    found = first(volume_set(view(load=throttled_load(iops_p999=2990, bytes_per_s_p999=20 * MIB))))
    assert found.target == Gp3(100, Performance(6000, 125))


def test_growing_and_raising_is_one_modification() -> None:
    both = view(forecast=fill_forecast(0.9), load=throttled_load())
    found = first(volume_set(both))
    assert found.kind is DecisionKind.GROW
    assert found.target.size_gib > 100
    assert found.target.performance != Performance()


def test_a_quiet_volume_is_lowered_to_what_suffices() -> None:
    quiet = view(FAST, load=Load(hours=quiet_hours(26)))
    found = first(volume_set(quiet, asked=FAST))
    assert found.kind is DecisionKind.LOWER
    assert found.target == Gp3(100)
    assert found.monthly_usd_change == Decimal("-5.00")


def test_a_lowering_needs_no_budget_though_it_is_overspent() -> None:
    two = [volume_set(each, asked=FAST) for each in (QUIET, view(FAST))]
    lowered, _ = plan(two, BOOK, NOW, budget_usd=Decimal(0)).decisions
    assert lowered.kind is DecisionKind.LOWER


def test_a_lowering_that_was_regretted_waits_twice_as_long() -> None:
    regretted = history(
        ended_modification(4 * DAY, kind="lower"),
        ended_modification(3 * DAY, kind="raise"),
        ended_modification(2 * DAY, kind="grow"),
    )
    quiet = view(FAST, load=Load(hours=quiet_hours(26)), history=regretted)
    assert first(volume_set(quiet, asked=FAST)).kind is DecisionKind.KEEP
    longer = replace(quiet, load=Load(hours=quiet_hours(50)))
    assert first(volume_set(longer, asked=FAST)).kind is DecisionKind.LOWER


BUSY = BrokerAbsence(pod="orders-broker-a-0", append_bytes_per_s=110 * MIB, away_seconds=300)
PAYS = Policy(apply=True, usd_per_minute_saved=0.05)


def test_a_rotation_that_pays_is_prepared_and_undone() -> None:
    found = first(volume_set(policy=PAYS, rotation=BUSY))
    assert found.kind is DecisionKind.ROTATION
    assert found.target == Gp3(100, Performance(3000, 298))
    assert "minutes sooner than in 37" in found.reason
    raised = view(
        FAST,
        history=history(
            ended_modification(5 * HOUR, FAST, kind=DecisionKind.ROTATION.value, original=Gp3(100))
        ),
    )
    over = replace(BUSY, over=True)
    undone = first(volume_set(raised, asked=FAST, policy=PAYS, rotation=over))
    assert undone.kind is DecisionKind.LOWER
    assert "the rotation of orders-broker-a-0 is over" in undone.reason
    asked_since = Gp3(100, Performance(3000, 250))
    kept = first(volume_set(raised, asked=FAST, spec=asked_since, policy=PAYS, rotation=over))
    assert kept.kind is DecisionKind.KEEP  # Until a quiet period shows that it needs no more.


def test_a_rotation_that_does_not_pay_is_left_as_it_is() -> None:
    idle = BrokerAbsence(pod="orders-broker-a-0", append_bytes_per_s=1 * MIB, away_seconds=60)
    assert first(volume_set(policy=PAYS, rotation=idle)).kind is DecisionKind.KEEP


def test_a_rotation_uses_no_slot_that_its_undoing_or_an_emergency_needs() -> None:
    used = view(history=history(ended_modification(10 * HOUR), ended_modification(9 * HOUR)))
    assert first(volume_set(used, policy=PAYS, rotation=BUSY)).refused_by == "slots"


@every_case(
    ("changed", "kind", "words"),
    [
        ({"given_gib": 90}, "resize-stuck", "has 90"),
        ({"requested_gib": 90, "given_gib": 90}, "not-applied", "Strimzi's operator"),
        ({"given_class": "gp3-4000-125"}, "class-stuck", "kubectl describe pvc"),
        ({"actual": Gp3(100, Performance(5000, 125))}, "class-drift",
            "modify vol-0a back to 3000 IOPS"),
        ({"troubles": (Trouble("file-system-pending", "it has not grown", "restart it"),)},
            "file-system-pending", "restart it"),
    ],
)  # fmt: skip
def test_a_volumes_trouble_has_a_remedy(changed: dict[str, object], kind: str, words: str) -> None:
    found = first(volume_set(view(**changed)))
    assert (found.kind, found.refused_by) == (DecisionKind.ADVISE, kind)
    assert words in found.reason


def test_a_stuck_resize_holds_back_the_next_change_and_a_drift_does_not() -> None:
    stuck = view(forecast=fill_forecast(0.99), given_gib=90)
    assert first(volume_set(stuck)).refused_by == "resize-stuck"
    drifted = view(forecast=fill_forecast(0.99), actual=Gp3(100, Performance(5000, 125)))
    assert first(volume_set(drifted)).kind is DecisionKind.GROW


BEYOND = (
    {"requested_gib": 200, "given_gib": 200, "actual": Gp3(200)},
    {"requested_gib": 200},
    {"actual": Gp3(200)},
    # Each with a trouble that would block any other change.
    {"requested_gib": 200, "troubles": (Trouble("resize-refused", "no", "look"),)},
    {"requested_gib": 200, "wanted_class": "gp3-4000-125"},
)


@every_case("changed", BEYOND)
def test_a_pool_is_set_to_its_volumes_whatever_stands_there(changed: dict[str, object]) -> None:
    """An autoresizer grew the claim, somebody the volume, or somebody made the pool smaller."""
    no_slot_left = history(*(ended_modification(n * HOUR) for n in range(1, 5)))
    full = view(forecast=fill_forecast(0.99), **{"history": no_slot_left, **changed})
    for ignored in ("", "All storage changes will be ignored."):
        found = first(volume_set(full, ignored=ignored))
        assert (found.kind, found.target) == (DecisionKind.GROW, Gp3(200))
        assert (found.monthly_usd_change, found.refused_by) == (Decimal(0), "")
    frozen = first(volume_set(full, frozen="ann looks at it"))
    assert (frozen.kind, frozen.refused_by) == (DecisionKind.WAIT, "frozen")


def test_a_shrunk_volume_keeps_the_others_of_its_pool_from_growing() -> None:
    full = view(forecast=fill_forecast(0.99))
    found = first(volume_set(full, ignored="All storage changes will be ignored."))
    assert (found.kind, found.refused_by) == (DecisionKind.WAIT, "storage-ignored")
    assert "growth included, and says: All storage changes will be ignored;" in found.reason
    assert "correct another volume of KafkaNodePool broker-a first" in found.reason


LARGE = Gp3(1000)


def a_set(
    used_gib: float = 100.0, *, days: float = 14.0, policy: Policy | None = None
) -> VolumeSet:
    held = FillForecast(used_bytes=used_gib * GIB, span_seconds=days * DAY)
    return volume_set(view(LARGE, forecast=held), asked=LARGE, policy=policy)


def test_one_volume_replaced_costs_its_copying_and_the_hours_of_both() -> None:
    found = payback(LARGE, Gp3(120), 100 * GIB, "m7g.2xlarge", BOOK)
    # 880 GiB at 8 cents; 100 GiB on both sides at a cent; half of 125 MiB/s.
    assert found.monthly_usd == Decimal("70.40")
    assert found.hours == pytest.approx(100 * 1024 / 62.5 / 3600)
    machine = BOOK.instance_hour("m7g.2xlarge").usd + Decimal("9.60") / 730
    expected = Decimal(2) + machine * Decimal(repr(found.hours))
    assert float(found.once_usd) == pytest.approx(float(expected))
    assert found.months == pytest.approx(float(expected) / 70.40)


def test_nothing_is_advised_where_nothing_is_saved() -> None:
    faster = Gp3(900, Performance(16_000, 1000))
    assert payback(LARGE, faster, 100 * GIB, None, BOOK) is None


def test_a_volume_far_too_large_is_advised_with_its_months() -> None:
    (found,) = decide(a_set(), BOOK, NOW)
    assert found.kind is DecisionKind.ADVISE
    assert found.monthly_usd_change == 0
    assert "a new pool with smaller volumes saves $70.40 a month" in found.reason
    assert "pays after 0.0 months" in found.reason


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(a_set(800.0), id="it fits"),
        pytest.param(a_set(days=5.0), id="nobody looked for long"),
        pytest.param(a_set(policy=Policy(apply=True, votes=True)), id="voters stay where they are"),
        pytest.param(
            volume_set(view(LARGE, forecast=FillForecast(used_bytes=GIB, span_seconds=14 * DAY)),
                view(LARGE), asked=LARGE), id="of one nothing is known"),
    ],
)  # fmt: skip
def test_else_nothing_is_said(of: VolumeSet) -> None:
    assert smaller(of, BOOK) is None


def test_a_move_that_pays_too_late_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.volumes.growth.MOST_MONTHS", 0)
    assert smaller(a_set(), BOOK) is None


def test_the_fullest_of_a_set_sizes_all_of_it() -> None:
    held = FillForecast(used_bytes=100 * GIB, span_seconds=14 * DAY)
    fuller = replace(held, used_bytes=500 * GIB)
    both = volume_set(view(LARGE, forecast=held), view(LARGE, forecast=fuller), asked=LARGE)
    assert smaller(both, BOOK).startswith("590 GiB would hold the fullest")


def test_a_fast_volume_keeps_the_size_its_iops_need() -> None:
    fast = Gp3(1000, Performance(80_000, 125))
    held = FillForecast(used_bytes=GIB, span_seconds=14 * DAY)
    said = smaller(volume_set(view(fast, forecast=held), asked=fast), BOOK)
    assert said.startswith("160 GiB")
