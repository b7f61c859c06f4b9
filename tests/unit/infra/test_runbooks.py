"""docs/runbooks: a page for every alarm and alert, and no page that nothing leads to."""

from __future__ import annotations

import re
from pathlib import Path

from core.cluster.operated import operated_cluster
from infra.alerts.alarms import alarms
from tests.every_case import every_case
from tests.unit.infra.programs import prometheus_alerts, spec

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks"
PAGES = {page.stem: page.read_text() for page in RUNBOOKS.glob("*.md")}
EVERYTHING = spec(connect={}, probe={"image": "probe:1"}, eviction_gate={"image": "gate:1"})
ALERTS = set(prometheus_alerts(EVERYTHING))
ALARMS = {alarm.runbook for alarm in alarms(operated_cluster(spec()))}


def test_every_alert_and_alarm_has_a_page_and_every_page_is_ones() -> None:
    assert set(PAGES) == ALERTS | ALARMS


@every_case("name", sorted(PAGES))
def test_a_page_says_what_it_means_where_to_look_what_to_do_and_when_it_ends(name: str) -> None:
    title, meaning, *_ = PAGES[name].splitlines()
    assert title == f"# {name}" or name in ALARMS
    assert meaning.rstrip("|").strip()
    assert re.findall(r"^## (.+)$", PAGES[name], re.MULTILINE) == ["Look", "Do", "Ends"]


@every_case("name", sorted(PAGES))
def test_a_pages_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[name]):
        assert (RUNBOOKS / target).is_file(), target
