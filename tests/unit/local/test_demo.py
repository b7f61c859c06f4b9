"""The demo: its cluster, what it judges and records, and clients that outlive an authority."""

import base64
import copy
import io
import time
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

from rich.console import Console

from core import cluster, timing
from core.ground.naming import cluster_ca_secret
from local.demo import clients, costs
from local.demo import spec as demo_spec
from local.demo.narration import Narrator
from local.demo.result import judge
from local.kubernetes.client import Api
from local.place import Place
from tests.every_case import every_case
from tests.unit.certificates import Issued, issue

GOOD: dict[str, Any] = {
    "pulumi": {"version": "3.220.0", "created": 150, "changed_on_second_up": 0},
    "nth": {"version": "1.25.1", "forwarded_at_s": 9.0, "drained_at_s": 14.0},
    "replacement_ready_at_s": 6.0,
    "load_balancer": {"registered_after_s": 0.1, "healthy_after_s": 6.2, "ready_after_s": 9.0},
    "lost": 0,
    "cost": {
        "bill_total": "1.23",
        "report_total": "1.23",
        "rotation": {"down_seconds": 9.0, "catch_up_seconds": 2.5},
    },
}


def test_a_rotation_that_held_everything_has_no_complaint() -> None:
    # A total of more decimals is the same money.
    assert judge({**GOOD, "cost": {**GOOD["cost"], "report_total": "1.2300000"}}) == []


@every_case(
    ("path", "value", "complaint"),
    [
        (("nth", "forwarded_at_s"), 5.0, "before the replacement was Ready"),
        (("nth", "forwarded_at_s"), None, "forwarded at None"),
        (("replacement_ready_at_s",), None, "Ready at None"),
        (("load_balancer", "ready_after_s"), 2.0, "healthy after 6.2 s"),
        (("load_balancer", "healthy_after_s"), None, "healthy after None"),
        (("lost",), 3, "3 acknowledged records cannot be read back"),
        (("pulumi", "changed_on_second_up"), 2, "changed 2 resources"),
        (("cost", "rotation"), None, "how long the rotated broker"),
        (("cost", "report_total"), "1.24", "differs from the bill's 1.23"),
    ],
)
def test_what_did_not_hold_is_named(path: tuple[str, ...], value: object, complaint: str) -> None:
    result = copy.deepcopy(GOOD)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    failures = judge(result)
    assert len(failures) == 1
    assert complaint in failures[0]


def test_the_demos_cluster_is_valid_and_its_timeouts_agree() -> None:
    spec = cluster.parse(demo_spec.spec(Place(11, Path("/nowhere"))))
    assert [v.sentence for v in timing.check(spec)] == []
    assert spec.network.vpc_cidr == "10.11.0.0/16"


def test_what_an_earlier_run_was_billed_is_not_in_the_next_ones_report(tmp_path: Path) -> None:
    kept = tmp_path / "index.html"
    kept.touch()
    for name in ("bill/data/BILLING_PERIOD=2026-11", "history/incidents", "report/tables/cost"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "of-another-twin").touch()
    costs.forget(tmp_path)
    assert list(tmp_path.rglob("*")) == [kept]


def test_a_client_that_lives_on_trusts_a_replaced_authority() -> None:
    old, new = issue("cluster-ca v1", None), issue("cluster-ca v2", None)
    secrets: dict[str, dict[str, str]] = {}

    def stored(signer: Issued, *trusted: Issued) -> None:
        mine = issue(clients.PRODUCER, signer)
        secrets[clients.PRODUCER] = {"user.crt": mine.certificate_pem, "user.key": mine.key_pem}
        texts = {f"ca-{n}.crt": each.certificate_pem for n, each in enumerate(trusted)}
        secrets[cluster_ca_secret(clients.CLUSTER)] = texts

    class Holding:
        def get(self, path: str) -> dict[str, Any]:
            held = secrets[path.rpartition("/")[2]]
            return {"data": {k: base64.b64encode(v.encode()).decode() for k, v in held.items()}}

    stored(old, old)
    entry = clients.Entry(cast("Api", Holding()), ["kafka:9094"], clients.PRODUCER)
    context = entry()["ssl_context"]
    entry.renew()
    assert len(context.get_ca_certs()) == 1
    stored(new, new, old)
    entry.renew()
    assert len(context.get_ca_certs()) == 2


def test_every_line_that_was_printed_is_in_the_picture_in_order(tmp_path: Path) -> None:
    long = "a reason with <brackets> & more " * 9
    narrator = Narrator(Console(file=io.StringIO()), time.time())
    for sentence in ("first", long, "last"):
        narrator.say(sentence)
    narrator.draw(tmp_path / "narration.svg", "a run")
    root = ET.parse(tmp_path / "narration.svg").getroot()  # noqa: S314 - our own
    assert "url(" not in (tmp_path / "narration.svg").read_text().replace("url(#", "")
    rows = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    words = [word for row in rows for word in row.split() if word not in {"0.0", "s"}]
    assert words == ["a", "run", "first", *long.split(), "last"]
