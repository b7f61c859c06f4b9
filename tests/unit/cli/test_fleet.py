"""`stillwater fleet` over three clusters in memory, over two hundred slow ones, and its page."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from moto import mock_aws
from typer.testing import CliRunner

from cli.desk.reading import desk_cluster
from cli.fleet import command
from cli.fleet.command import look
from cli.fleet.reading import Gateway, ask_all, read_file, wanted_versions
from cli.main import app
from cli.project.init import render, write
from cli.project.release import Origin
from cli.target import Cluster
from core.cluster.fleet import parse_fleet
from core.cost import pricing
from core.fleet import ClusterFacts
from core.ground.constants import RELEASE
from core.ground.fields import Unknown
from core.incidents.record import Incident
from core.rotation.plan import Build, Launched
from core.rotation.run_record import RunState
from handlers.store.table import Records
from tests.unit.cli.project.test_init import answers
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.fakes import OLD as FIRST
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import carry, current, turn
from tests.unit.infra.programs import spec

OLD, NEW = Build(image_id="ami-0a"), Build(image_id="ami-0b")
SPEC = spec(environment="prod")
ROLE = "arn:aws:iam::111122223333:role/stillwater-fleet"


class Ticking(Cluster):
    """A cluster in memory: its functions, ledger and brokers are a station's."""

    station: Station
    status: str | None = None  # None: as its brokers are

    def invoke(self, role: str, event: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        if role == "health":
            away = self.station.ledger.open_incidents()
            status = self.status or ("degraded" if away else "healthy")
            body = {"status": status, "message": f"It is {status}.", "cluster": "orders"}
            body |= {"at": "now", "seconds": 0.1, "parts": []}
            return {"statusCode": 200, "body": json.dumps(body)}
        for instance_id in self.station.cluster.node_views:
            self.station.cluster.builds.setdefault(instance_id, Launched(NEW, NEW))
        answer = self.station.conductor.take(event or {}, self.station.now)
        return json.loads(json.dumps(answer))

    @property
    def records(self) -> Records:
        return self.station.records

    def incidents(self, *, closed: bool) -> list[Incident]:
        return self.station.ledger.open_incidents()


@dataclass(frozen=True)
class InMemory(Gateway):
    """The gateway over clusters in memory, which counts what it asks for."""

    clusters: Mapping[str, Ticking] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def cluster(self, name: str) -> Ticking:
        return self.clusters[name]

    def ask(self, name: str, command: str, **said: Any) -> str:
        self.asked.append((command, name))
        return super().ask(name, command, **said)


def ticking(name: str) -> Ticking:
    station = Station()
    operator = station.cluster.operator
    known = {"kafka_version": SPEC.kafka.version, "strimzi_version": "1.2.0"}
    object.__setattr__(station.cluster, "operator", lambda: replace(operator(), **known))
    object.__setattr__(station.cluster, "server_version", lambda: "v1.35.3-eks-0a1b2c3")
    nodes = {i: replace(n, kubelet="v1.35.3") for i, n in station.cluster.node_views.items()}
    station.cluster.node_views = nodes
    station.cluster.builds = dict.fromkeys(nodes, Launched(OLD, NEW))
    made = Ticking(SPEC, None, asker="ada")
    object.__setattr__(made, "station", station)
    return made


class Show:
    """Three clusters that anybody asks for from the command line."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        places: dict[str, Any] = {n: {"region": "us-east-1"} for n in ("stage", "shop", "cart")}
        places["shop"]["clients"] = places["cart"]["clients"] = ["checkout"]
        waves = [
            {"name": "canary", "environments": ["stage"], "bake_hours": 2},
            {"name": "rest", "environments": ["shop", "cart"], "bake_hours": 0},
        ]
        file = parse_fleet({"name": "payments", "environments": places, "waves": waves})
        self.clusters = {name: ticking(name) for name in places}
        self.gateway = InMemory(file, root, clusters=self.clusters)
        monkeypatch.setattr(command, "open_fleet", lambda _: self.gateway)
        monkeypatch.setattr(command, "time", SimpleNamespace(time=lambda: self.now))

    @property
    def now(self) -> float:
        return max(each.station.now for each in self.clusters.values())

    def run(self, *words: str, code: int = 0) -> str:
        """Type a command; every cluster's clock shows what the latest does."""
        now = self.now
        for each in self.clusters.values():
            each.station.now = now
        done = CliRunner().invoke(app, ["fleet", *words])
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    def rotate(self, name: str) -> None:
        assert carry(self.clusters[name].station).state is RunState.DONE

    def wait(self, seconds: float) -> None:
        self.clusters["stage"].station.now = self.now + seconds


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    monkeypatch.setattr("logging.Logger._log", lambda *_, **__: None)
    return Show(tmp_path, monkeypatch)


def test_waves_roll_one_after_the_other_and_asking_twice_starts_nothing_twice(show: Show) -> None:
    assert "stage: 3 nodes, about" in show.run("plan", "fleet.yaml")
    assert show.gateway.asked == []
    assert "stage may start. stage: ada starts a rotation of 3 nodes." in show.run("advance", "f")
    again = show.run("advance", "f")
    assert "Wave canary is in progress. stage: 0 of 3 nodes rotated." in again
    assert show.gateway.asked == [("start", "stage")]
    turn(show.clusters["stage"].station)
    assert '"canary": "in progress"' in show.run("status", "f", "--watch", "--json")
    show.rotate("stage")
    assert "Wave canary bakes until" in show.run("advance", "f")
    show.wait(2 * 3600.0)
    # Two that share clients: the second begins once the first is done.
    assert "shop: ada starts" in show.run("advance", "f")
    assert "cart waits. shop comes first: both have the clients checkout." in show.run("plan", "f")
    show.rotate("shop")
    assert "cart: ada starts" in show.run("advance", "f")
    show.rotate("cart")
    assert "All 3 clusters are as described." in show.run("advance", "f")
    assert show.gateway.asked == [("start", name) for name in ("stage", "shop", "cart")]


def test_two_who_advance_at_once_start_one_run(show: Show) -> None:
    gateway = command.open_fleet(Path())
    first, second = (look(gateway).decision for _ in range(2))
    assert [fine for _, fine in command.carry_out(first, gateway)] == [True]
    begun = current(show.clusters["stage"].station)
    ((said, fine),) = command.carry_out(second, gateway)
    assert (fine, current(show.clusters["stage"].station)) == (False, begun)
    assert said.startswith(f"stage: no start. Run {begun.id} is running; one rotation at a time.")


def test_one_unhealthy_cluster_stops_the_fleet_until_a_person_goes_on(show: Show) -> None:
    show.clusters["shop"].station.conductor.take({"command": "start", "actor": "bo"}, show.now)
    show.run("advance", "f")
    turn(show.clusters["stage"].station)
    show.clusters["stage"].status = "unhealthy"
    said = show.run("advance", "f", code=1)
    assert "Wave canary stopped. stage: it is unhealthy. It is unhealthy." in said
    assert "stage: ada pauses the run once node 10 is back." in said
    assert {("pause", "stage"), ("pause", "shop")} < {*show.gateway.asked}
    asked = [*show.gateway.asked]
    show.run("advance", "f", code=1)
    assert show.gateway.asked == asked
    # It is well again: what was paused stays so, whoever asks.
    show.clusters["stage"].status = None
    assert carry(show.clusters["stage"].station).state is RunState.PAUSED
    assert "its rotation is paused." in show.run("advance", "f", code=1)
    assert show.gateway.asked == asked
    show.gateway.ask("stage", "resume")
    show.rotate("stage")
    assert "bakes until" in show.run("advance", "f", code=1)


def test_an_open_incident_holds_a_wave(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    spot = ec2_event("EC2 Spot Instance Interruption Warning", FIRST)
    show.clusters["stage"].status = "healthy"
    show.clusters["stage"].station.announce(spot)
    said = show.run("advance", "f")
    assert "Wave canary waits. stage: an incident is open: " in said
    assert show.gateway.asked == []
    monkeypatch.setattr(Ticking, "incidents", lambda *_, **__: 1 / 0)
    said = show.run("advance", "f", code=2)
    assert "what is unknown holds the wave" in said
    assert show.gateway.asked == []


def test_stop_pauses_every_run_and_without_one_names_the_file(show: Show) -> None:
    assert "Write `hold: WHY` in f." in show.run("stop", "f", code=1)
    show.run("advance", "f")
    assert "stage: ada paused the run." in show.run("stop", "f")
    assert "stage: ada paused the run." in show.run("stop", "f")
    assert show.gateway.asked == [("start", "stage"), ("pause", "stage")]
    assert "paused" in show.run("advance", "f", code=1)


def test_json_and_page_say_the_same_as_the_table(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    html = tmp_path / "fleet.html"
    said = json.loads(
        CliRunner().invoke(app, ["fleet", "status", "f", "--json", "--html", str(html)]).output
    )
    (stage, *_) = said["clusters"]
    assert stage["versions"] == {
        "eks": "1.35", "image": "ami-0a", "strimzi": "1.2.0", "kafka": "4.2.0",
        "stillwater": RELEASE,
    }  # fmt: skip
    assert (stage["standing"], stage["nodes"], stage["behind"]) == ("behind", 3, [])
    assert min(stage["hours"], stage["usd"]) > 0
    # The prices of its directory are those of every command there.
    own = json.loads(pricing.SHIPPED.read_text())
    hours = dict.fromkeys((each.instance_type for each in SPEC.pools), "1000")
    own["regions"] = {"us-east-1": {"instance_hour": {"source": "karpenter", "usd": hours}}}
    (tmp_path / pricing.OWN).write_text(json.dumps(own))
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert desk_cluster("prod", Cluster(SPEC, None)).hourly_usd_by_pool["broker"] == 1000
    dear = json.loads(CliRunner().invoke(app, ["fleet", "status", "f", "--json"]).output)
    assert dear["clusters"][0]["usd"] > 100 * stage["usd"]
    assert said["starts"] == ["stage"]
    assert stage["why"] in html.read_text()


def test_a_cluster_that_does_not_answer_in_time_costs_no_other() -> None:
    late = threading.Event()
    found = ask_all(["late", "well"], lambda name: name == "well" or late.wait(60), seconds=0.2)
    late.set()
    assert found == {"well": True, "late": Unknown("it did not answer within 0 s")}


def project(root: Path, environment: str) -> None:
    write(root, render(answers(environment=environment), Origin(RELEASE)), force=False)


def fleet_file(root: Path, **environments: Mapping[str, Any]) -> Gateway:
    waves = [{"name": "all", "environments": [*environments]}]
    written = {"name": "payments", "environments": environments, "waves": waves}
    (root / "fleet.yaml").write_text(yaml.safe_dump(written))
    return Gateway(read_file(root / "fleet.yaml"), root)


@mock_aws
def test_accounts_are_entered_by_the_role_of_the_file_once_in_the_callers_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    project(tmp_path / "kafka", "prod")
    there = {"directory": "kafka", "region": "us-east-1", "environment": "prod", "role": ROLE}
    gateway = fleet_file(tmp_path, one=there, two=there)
    one, two = (gateway.cluster(name) for name in ("one", "two"))
    assert one.client("dynamodb") is two.client("dynamodb")
    assert (
        one.client("sts")
        .get_caller_identity()["Arn"]
        .endswith(f":assumed-role/stillwater-fleet/{one.actor}")
    )
    assert wanted_versions(one, tmp_path / "kafka") == {
        "eks": "1.35", "kafka": "4.2.0", "strimzi": "1.2.0", "stillwater": RELEASE,
    }  # fmt: skip
    # Nothing of it is there: all is unknown, and says why.
    facts = gateway.read("one")
    unread = [n for n in ("versions", "rotation", "pause", "incidents", "health") if
              isinstance(getattr(facts, n), Unknown)]  # fmt: skip
    assert unread == ["versions", "rotation", "pause", "incidents", "health"]
    assert "prod-orders-rotate could not be invoked" in facts.versions.why


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"region": "eu-west-1"}, "in eu-west-1 by the fleet's file and in us-east-1 by its"),
        ({"region": "us-east-1", "environment": "prd"}, "Did you mean prod?"),
        ({"region": "us-east-1", "environment": "shop.yaml"}, "shop.yaml"),
    ],
    ids=["another region", "no such environment", "no such file"],
)
def test_a_closed_cluster_is_unknown(tmp_path: Path, told: dict[str, Any], why: str) -> None:
    project(tmp_path, "prod")
    facts = look(fleet_file(tmp_path, prod=told)).facts["prod"]
    assert why in facts.health.why
    assert facts == ClusterFacts.unread(facts.health)


def test_an_older_function_names_no_versions_and_is_unknown(show: Show) -> None:
    stage = show.clusters["stage"]
    object.__setattr__(stage, "invoke", lambda *_: {"said": "", "plan": PLAN})
    facts = show.gateway.read("stage")
    assert "of a release that names no versions" in facts.versions.why
    assert facts.rotation is None


PLAN = {"seconds": 0, "nodes": [], "notes": [], "too_long": [], "unavailable": []}
