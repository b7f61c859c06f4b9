"""The fault matrix: docs/reference/faults.md, row for row.

Most rows run here on a World: the deployed entry points on the twin's AWS, between them and it the
fault. After each the cluster is whole, and nothing has happened that must never happen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from local import environment
from local.twin import Twin
from tests.integration.aws.cloud import Cloud, session_of
from tests.integration.faults import matrix
from tests.integration.faults.table import Case
from tests.integration.faults.world import World

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


# Rows that turn an incident over once for each effect or wait out hours of the case's clock, and
# those whose fault the explorer draws in memory too (tests/explorer/outages.py).
LONG = frozenset(
    {
        "all_at_once",
        "announcements_duplicated",
        "announcements_late",
        "announcements_reordered",
        "api_server_down_before_the_drain",
        "api_server_down_beyond_the_lease",
        "api_server_down_in_the_drain",
        "aws_throttled_before_the_drain",
        "aws_throttled_in_the_drain",
        "every_answer_lost_once",
        "every_call_refused_once",
        "explored_seeds_replayed",
        "handler_away_past_the_drain_limit",
        "handler_down_for_long",
        "interruption_killed_after_each_effect",
        "kafka_unreachable_at_the_gate",
        "kafka_unreachable_before_the_drain",
        "killed_at_every_point_of_one_rotation",
        "spot_warning_beside_a_rotation",
        "sweep_killed_after_each_effect",
        "tick_dead_for_long",
        "tick_killed_after_each_effect",
        "tick_outlives_its_lease",
        "tick_overtaken",
        "writes_conflict",
    }
)
ROWS = [
    pytest.param(row, id=row.name, marks=[pytest.mark.long] if row.name in LONG else [])
    for row in matrix.CASES
]
# A world shows what its instances were for as long as it lives, and lists all of them every minute.
MOST_CASES_OF_A_WORLD = 10


@dataclass
class Stage:
    """One world for all cases, made anew after one that failed."""

    twin: Twin
    subnets: Mapping[str, str]
    monkeypatch: pytest.MonkeyPatch
    world: World | None = None
    cases: int = 0

    def enter(self) -> World:
        self.cases += 1
        if self.cases % MOST_CASES_OF_A_WORLD == 0:
            self.leave()
        if self.world is None:
            cloud = Cloud(self.twin.place, session_of(self.twin.place), self.subnets)
            self.world = World(cloud, self.monkeypatch)
        self.world.renew()
        return self.world

    def leave(self) -> None:
        if self.world is not None:
            self.world.cloud.clear()
            self.world = None


@pytest.fixture(scope="module")
def stage(twin: Twin, subnets: Mapping[str, str]) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        variables = environment.with_credentials(twin.place)
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, variables[name])
        made = Stage(twin, subnets, monkeypatch)
        yield made
        made.leave()


def test_the_long_rows_are_rows() -> None:
    assert {row.name for row in matrix.CASES} >= LONG


@pytest.mark.parametrize("row", ROWS)
def test_the_cluster_is_whole_after(row: Case, stage: Stage) -> None:
    world = stage.enter()
    try:
        row.run(world)
        assert world.shortcomings() == []
    except BaseException:
        stage.leave()
        raise
