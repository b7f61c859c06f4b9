"""cli.desk: who is refused, what may be asked, and that nothing unread is good news."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cli.desk.reading import (
    DeskCluster,
    DeskReading,
    DeskSource,
    LastAnswer,
    LedgerSeen,
    VolumesSeen,
)
from cli.desk.server import HEADERS, PAGES, TOKEN_HEADER, WISHES, DeskWatch, application, fulfil
from cli.desk.state import page_state
from core.availability.lease import Lease
from core.ground.errors import Conflict, InvalidInput, StillwaterError
from core.incidents.joining import Pause
from core.incidents.record import Incident, State
from core.rotation.run_record import Options, Phase, RunState, open_run
from core.volumes.sizing import GIB
from core.volumes.views import FillSample
from core.zones.incident import ZoneIncident, ZoneState
from handlers.store.volume_records import Memory
from tests import desk_data
from tests.every_case import every_case

PORT = 4321
TOKEN = "a" * 43
OURS = {"Host": f"127.0.0.1:{PORT}", TOKEN_HEADER: TOKEN}
CLUSTER = DeskCluster("prod", "prod-orders", "us-east-1", 14_400.0)


@dataclass
class Desk:
    """The application, with what it was asked to do; no socket."""

    refusal: Exception | None = None
    wished: list[tuple[str, object]] = field(default_factory=list)
    asked: list[DeskSource] = field(default_factory=list)

    def fulfil(self, name: str, said: object) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.wished.append((name, said))
        return "Done."

    def ask(self, source: DeskSource) -> LastAnswer:
        self.asked.append(source)
        return (
            LastAnswer(LedgerSeen(), 5.0)
            if source is DeskSource.LEDGER
            else LastAnswer(failed="no")
        )

    def get(self, path: str, headers: Mapping[str, str] = OURS) -> tuple[int, dict[str, str], str]:
        return self.request("GET", path, headers)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] = OURS, body: object = None
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body; a stream is left when every source was asked."""
        return asyncio.run(self._request(method, path, headers, json.dumps(body).encode()))

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], str]:
        app = application(
            DeskWatch(DeskReading(CLUSTER), self.ask, lambda: 5.0), self.fulfil, TOKEN, PORT
        )
        told: list[Mapping[str, Any]] = []
        gone = asyncio.Event()
        bodies = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if bodies:
                return bodies.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            told.append(message)
            if set(self.asked) == set(DeskSource):
                gone.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
        await app(scope, receive, send)
        start = told[0]
        said = {k.decode(): v.decode() for k, v in start["headers"]}
        return start["status"], said, b"".join(m.get("body", b"") for m in told).decode()


@every_case(
    ("headers", "status"),
    [
        ({TOKEN_HEADER: ""}, 401),
        ({TOKEN_HEADER: "b" * 43}, 401),
        ({"Host": f"rebound.example:{PORT}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=["no token", "wrong token", "another name", "another port", "another site", "no site"],
)
@every_case(("method", "path"), [("GET", "/events"), ("POST", "/wishes/resume")])
def test_who_is_not_ours_sees_and_does_nothing(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    desk = Desk()
    answered, _, body = desk.request(method, path, {**OURS, **headers}, {})
    assert answered == status
    assert set(json.loads(body)) == {"refused"}
    assert TOKEN not in body
    assert (desk.wished, desk.asked) == ([], [])


@every_case("path", list(PAGES))
def test_the_page_is_open_says_nothing_and_may_load_only_its_own(path: str) -> None:
    status, headers, body = Desk().get(path, {"Host": f"localhost:{PORT}"})
    assert status == 200
    assert {k.lower(): v for k, v in HEADERS.items()}.items() <= headers.items()
    assert "https://" not in body
    assert CLUSTER.name not in body


def test_a_wish_is_no_get_and_a_page_no_post() -> None:
    desk = Desk()
    assert desk.get("/wishes/resume")[0] == 405
    assert desk.request("POST", "/", OURS)[0] == 405
    assert desk.wished == []


def test_a_wish_is_done_and_the_ledger_read_anew() -> None:
    desk = Desk()
    status, _, body = desk.request("POST", "/wishes/hold", OURS, {"instance": "i-0a"})
    assert (status, json.loads(body)) == (200, {"said": "Done."})
    assert desk.wished == [("hold", {"instance": "i-0a"})]
    assert desk.asked == [DeskSource.LEDGER]


@pytest.mark.parametrize(
    ("refusal", "status"),
    [(InvalidInput(["No."]), 409), (Conflict("No."), 409), (StillwaterError("No."), 502)],
)
def test_what_is_refused_is_a_sentence(refusal: Exception, status: int) -> None:
    answered, _, body = Desk(refusal).request("POST", "/wishes/resume", OURS, {})
    assert (answered, json.loads(body)) == (status, {"refused": "No."})


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/wishes/obey", {}, 404), ("/wishes/hold", "x" * 9000, 400)],
    ids=["unknown", "too long"],
)
def test_an_unknown_or_too_long_wish_is_refused(path: str, body: object, status: int) -> None:
    desk = Desk()
    assert desk.request("POST", path, OURS, body)[0] == status
    assert desk.wished == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hold", []),
        ("hold", {"instance": "i-0a"}),
        ("hold", {"instance": "i-0a", "until": 5}),
        ("resume", {"more": "x"}),
        ("pause", {"because": "x" * 501, "until": ""}),
    ],
)
def test_a_wish_of_another_shape_is_refused_before_any_call(name: str, said: object) -> None:
    with pytest.raises(InvalidInput):
        fulfil(None, name, said)
    assert name in WISHES


def test_a_stream_begins_at_once_and_tells_what_was_read() -> None:
    desk = Desk()
    status, headers, body = desk.get("/events")
    events = [json.loads(e.removeprefix("data: ")) for e in body.split("\n\n") if e]
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert events[0]["verdict"]["tone"] == "unknown"
    assert set(desk.asked) == set(DeskSource)


NOW = 1_795_168_800.0
STATE_CLUSTER = DeskCluster("prod", "prod-orders", "us-east-1", 14_400.0, 730.0, {"broker": 3.6})
WELL = {"status": "healthy", "message": "All 9 parts are healthy.", "at": "now", "parts": []}
OUT = desk_data.incident("i-0a", 10, "us-east-1a", 4, NOW - 190)
HOLDING = desk_data.incident("i-0b", 20, "us-east-1b", 3, NOW - 150)
FROZEN = ZoneIncident(
    key="person:use1-az3",
    source="person",
    state=ZoneState.FROZEN,
    opened_at=NOW - 60,
    said_at=NOW - 60,
    zone_id="use1-az3",
    zone="us-east-1b",
)


def reading(*incidents: Incident, **ledger: Any) -> DeskReading:
    """Return a reading of this very second in which everything was read."""
    seen = LedgerSeen(incidents=incidents, **ledger)
    values = {DeskSource.LEDGER: seen, DeskSource.VOLUMES: VolumesSeen(), DeskSource.HEALTH: WELL}
    return DeskReading(
        STATE_CLUSTER, {source: LastAnswer(value, NOW) for source, value in values.items()}
    )


def verdict(of: DeskReading, now: float = NOW) -> tuple[str, str, str]:
    found = page_state(of, now)["verdict"]
    return found["tone"], found["title"], " ".join(found["sentences"])


def test_who_is_out_and_how_many_wait_is_the_title() -> None:
    assert verdict(reading(OUT, HOLDING))[:2] == ("busy", "Broker 10 is out, 1 more waits")


def test_a_used_lease_is_somebody_out_whatever_became_of_the_incident() -> None:
    lease = Lease("i-0z", NOW - 1, node_id=30, out_at=NOW - 900)
    assert verdict(reading(leases=(lease,)))[1] == "Node 30 (i-0z) is out"


def test_before_the_ledger_was_read_nobody_can_tell() -> None:
    shown = page_state(DeskReading(STATE_CLUSTER), NOW)
    assert shown["verdict"]["tone"] == "unknown"
    assert shown["incidents"] is shown["waits"] is shown["health"] is None


@every_case("source", list(DeskSource))
@every_case("failed", ["throttled", ""], ids=["failed", "too old"])
def test_what_was_not_read_is_never_calm(source: DeskSource, failed: str) -> None:
    old = replace(reading().answer(source), read_at=NOW - 3600)
    before = replace(reading(), answers={**reading().answers, source: old})
    seen = before.update(source, LastAnswer(failed=failed)) if failed else before
    tone, _, said = verdict(seen)
    assert tone == "unknown"
    assert source.capitalize() in said
    assert failed in said


def test_a_reading_that_fails_keeps_the_one_before_it_and_says_it_is_old() -> None:
    seen = reading(OUT).update(DeskSource.LEDGER, LastAnswer(failed="The ledger says nothing."))
    tone, title, said = verdict(seen)
    assert (tone, title) == ("unknown", "As last read: Broker 10 is out")
    assert "The ledger says nothing." in said
    assert page_state(seen, NOW)["incidents"]


@pytest.mark.parametrize(
    "incident",
    [
        replace(HOLDING, pages=("hold_limit",)),
        replace(HOLDING, state=State.RETAINED, reason="Kept: the hook was abandoned."),
    ],
    ids=["paged", "retained"],
)
def test_what_needs_a_person_is_an_alarm(incident: Incident) -> None:
    tone, _, said = verdict(reading(incident))
    assert tone == "alarm"
    assert incident.reason in said


def test_a_run_that_stopped_and_a_cluster_that_is_ill_are_alarms() -> None:
    run = replace(open_run([], Options(), "ada", NOW), state=RunState.STOPPED, reason="No way.")
    assert verdict(reading(run=run)) == ("alarm", "Nobody is out", "The rotation stopped: No way.")
    ill = reading().update(DeskSource.HEALTH, LastAnswer({**WELL, "status": "unknown"}, NOW))
    assert verdict(ill)[0] == "alarm"


def test_a_waiting_node_names_everything_in_its_way() -> None:
    lease = Lease("i-0a", NOW + 60, node_id=10, out_at=NOW - 60)
    seen = reading(
        OUT,
        replace(HOLDING, held_until=NOW + 60, reason="Partition t-0 has no margin."),
        leases=(lease,),
        zones=(FROZEN,),
        pause=Pause("ada", "disks", NOW - 5),
    )
    (wait,) = page_state(seen, NOW)["waits"]
    names = ("the pause", "a person's hold", "zone us-east-1b", "broker 10, us-east-1a")
    assert (wait["who"], wait["behind"]) == ("broker 20, us-east-1b", names)
    assert wait["why"][-1] == "Partition t-0 has no margin."


def test_a_runs_nodes_wait_for_those_who_are_away() -> None:
    turns = [
        desk_data.turn(10, "us-east-1a", "i-0a", phase=Phase.LEAVING, began_at=NOW - 3600),
        desk_data.turn(20, "us-east-1b", "i-0b", reason="Zone us-east-1b is frozen."),
    ]
    shown = page_state(reading(run=open_run(turns, Options(), "ada", NOW)), NOW)
    (wait,) = shown["waits"]
    assert (wait["behind"], wait["why"]) == (("broker 10",), ("Zone us-east-1b is frozen.",))
    assert shown["run"]["wishes"] == ["rotation-pause"]
    assert shown["costs"][-1]["usd"] == "$3.60 for 1 h"


def test_an_incident_shows_its_way_and_what_may_be_wished_of_it() -> None:
    shown = page_state(reading(replace(OUT, hooks={"drain": "secret-token"})), NOW)
    (found,) = shown["incidents"]
    assert [step["state"] for step in found["way"]][-3:] == ["draining", "gating", "released"]
    assert found["wishes"] == ["hold", "release"]
    assert "secret" not in json.dumps(shown)


def test_a_retained_instance_can_be_released_and_not_held() -> None:
    (found,) = page_state(reading(replace(HOLDING, state=State.RETAINED)), NOW)["incidents"]
    assert found["wishes"] == ["release"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [({"data-0": 100}, "Full in"), ({}, "The time until it is full is unknown")],
    ids=["size known", "size unknown"],
)
def test_a_volumes_forecast_is_said_or_that_nobody_knows(sizes: dict[str, int], said: str) -> None:
    samples = tuple(FillSample(NOW - 3600 * h, (60 - h / 2) * GIB) for h in range(48, -1, -1))
    seen = VolumesSeen({"sizes_gib": sizes}, {"data-0": Memory(samples=samples)})
    shown = page_state(reading().update(DeskSource.VOLUMES, LastAnswer(seen, NOW)), NOW)
    (claim,) = shown["volumes"]["claims"]
    assert claim["forecast"].startswith(said)


def test_an_unknown_price_is_said() -> None:
    seen = replace(reading(), cluster=replace(STATE_CLUSTER, monthly_usd=None))
    assert page_state(seen, NOW)["costs"][0]["usd"].startswith("unknown")
