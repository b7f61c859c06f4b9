"""The storage report and λ volumes, on the same volumes of the twin: they never contradict.

Both are given what the twin's own ClusterSpec says, each through the document that is rendered for
it, and the same measurements: the one as rows of samples, the other as a forecast and hours.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from core.cluster import ClusterSpec, parse
from core.cluster.operated import volumes
from core.cluster.report_facts import report_facts
from core.cost import pricing
from core.settings.facts import Facts
from core.settings.volumes import VolumeSettings
from core.volumes.deciding import DecisionKind, VolumeDecision, class_of, decide
from core.volumes.sizing import GIB, MIB, Gp3, Performance
from core.volumes.views import FillForecast, History, Hour, Load, VolumeSet, VolumeView
from local.demo import spec as demo_spec
from local.place import Place
from tests.unit.spark.test_storage_job import advised as sized
from tests.unit.spark.test_storage_job import billed

NOW, HOUR, DAY = 1_800_000_000.0, 3600.0, 86_400.0
BOOK = pricing.book("us-east-1")
FASTEST = Performance(4000, 250)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> ClusterSpec:
    return parse(demo_spec.spec(Place(99, tmp_path_factory.mktemp("twin"))))


@pytest.fixture(scope="module")
def facts(described: ClusterSpec) -> Facts:
    return report_facts(described)


@pytest.fixture(scope="module")
def settings(described: ClusterSpec) -> VolumeSettings:
    return volumes(described)


def advised(
    settings: VolumeSettings, volume: Gp3, used: float, per_day: float, load: Load
) -> VolumeDecision:
    """Return the advisor's decision."""
    name = class_of(volume.performance)
    one = VolumeView(
        claim="data-0-harbour-broker-a-10",
        pod="harbour-broker-a-10",
        volume_id="vol-1",
        actual=volume,
        requested_gib=volume.size_gib,
        given_gib=volume.size_gib,
        wanted_class=name,
        given_class=name,
        instance_type="r7g.2xlarge",
        history=History(known_since=NOW - 30 * DAY, looked_at=NOW),
        forecast=FillForecast(used_bytes=used, long_rate=per_day / DAY),
        load=load,
    )
    pool = settings.pools["broker-a"]
    of = VolumeSet(
        pool="broker-a",
        number=0,
        asked=volume,
        spec=Gp3(1),
        volumes=(one,),
        policy=pool.policy,
    )
    return decide(of, BOOK, NOW)[0]


def reported(facts: Facts, volume: Gp3, used: float, per_day: float, load: Load) -> Row:
    """Return the report's row."""
    row = billed(
        size_gib=float(volume.size_gib),
        billed_iops=float(volume.iops - 3000),
        billed_gib_per_s=(volume.throughput_mib_per_s - 125) / 1024,
        used_bytes=used,
        growth_bytes_per_day=per_day,
        append_bytes_per_s=None,
        iops_p999=load.iops_p999,
        throughput_p999_bytes_per_s=load.bytes_per_s_p999,
        volume_exceeded_share=load.volume_exceeded_share,
        instance_exceeded_share=load.instance_exceeded_share,
    )
    (found,) = sized(row, facts=facts)
    return found


def idle(iops: float = 100.0, mib_per_s: float = 10.0) -> Load:
    """A load that has been the same for days, and that nothing exceeded."""
    first = NOW - NOW % HOUR - 30 * HOUR
    return Load(
        volume_exceeded_share=0.0,
        instance_exceeded_share=0.0,
        iops_p999=iops,
        bytes_per_s_p999=mib_per_s * MIB,
        hours=tuple(
            Hour(first + n * HOUR, iops, mib_per_s * MIB, exceeded=False) for n in range(30)
        ),
    )


@given(
    size_gib=st.integers(20, 4000),
    share=st.floats(0.01, 0.99),
    per_day_share=st.floats(-0.05, 0.3),
)
def test_a_volume_is_too_small_for_both_or_for_neither_and_by_the_same(
    facts: Facts,
    settings: VolumeSettings,
    size_gib: int,
    share: float,
    per_day_share: float,
) -> None:
    volume = Gp3(size_gib)
    used, per_day = float(round(share * size_gib * GIB)), per_day_share * size_gib * GIB
    decision = advised(settings, volume, used, per_day, idle())
    row = reported(facts, volume, used, per_day, idle())
    assert (decision.kind is DecisionKind.GROW) == (row.finding == "too small")
    if decision.target is not None and decision.kind is DecisionKind.GROW:
        assert row.wanted_size_gib == decision.target.size_gib
        assert decision.reason.partition("GiB used")[0].endswith(
            row.reason.partition("less than")[2].partition("GiB used")[0]
        )


@given(iops=st.floats(1, 3300), mib_per_s=st.floats(1, 205))
def test_a_volume_is_faster_than_needed_for_both_or_for_neither_and_by_the_same(
    facts: Facts, settings: VolumeSettings, iops: float, mib_per_s: float
) -> None:
    # Half full and still: nothing is to be said of its size.
    volume, used = Gp3(100, FASTEST), 80.0 * GIB
    decision = advised(settings, volume, used, 0.0, idle(iops, mib_per_s))
    row = reported(facts, volume, used, 0.0, idle(iops, mib_per_s))
    assert (decision.kind is DecisionKind.LOWER) == (row.finding == "faster than needed")
    if decision.target is not None:
        wanted = Performance(row.wanted_iops, row.wanted_throughput_mib_per_s)
        assert wanted == decision.target.performance
        assert row.monthly_saving == pytest.approx(-decision.monthly_usd_change, abs=0.01)


@given(
    volume_share=st.none() | st.floats(0, 0.5),
    instance_share=st.none() | st.floats(0, 0.5),
    iops=st.none() | st.floats(1, 6000),
    mib_per_s=st.none() | st.floats(1, 300),
    now=st.sampled_from([Performance(), Performance(3000, 187), FASTEST]),
)
def test_a_volume_is_too_slow_for_both_or_for_neither_and_by_the_same(
    facts: Facts,
    settings: VolumeSettings,
    volume_share: float | None,
    instance_share: float | None,
    iops: float | None,
    mib_per_s: float | None,
    now: Performance,
) -> None:
    load = Load(
        volume_exceeded_share=volume_share,
        instance_exceeded_share=instance_share,
        iops_p999=iops,
        bytes_per_s_p999=None if mib_per_s is None else mib_per_s * MIB,
    )
    volume, used = Gp3(100, now), 80.0 * GIB
    decision = advised(settings, volume, used, 0.0, load)
    row = reported(facts, volume, used, 0.0, load)
    refused_by = decision.refused_by if decision.kind is DecisionKind.REFUSE else ""
    assert (refused_by == "instance" and decision.target is None) <= (
        row.finding in {"held back by its instance", "too slow"}
    )
    assert (row.finding == "held back by its instance") <= (refused_by == "instance")
    assert (row.finding == "too slow") == (
        decision.kind is DecisionKind.RAISE
        or (decision.kind is DecisionKind.REFUSE and not _bound(load, settings))
    )
    if decision.kind is DecisionKind.RAISE and decision.target is not None:
        wanted = Performance(row.wanted_iops, row.wanted_throughput_mib_per_s)
        assert wanted == decision.target.performance


def _bound(load: Load, settings: VolumeSettings) -> bool:
    share = load.instance_exceeded_share
    return share is not None and share >= settings.pools["broker-a"].policy.exceeded_share
