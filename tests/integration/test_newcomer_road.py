"""A newcomer types README and tutorial on a twin, from the first command to the last.

Every command comes out of the pages (tests.newcomer), in their order, in one shell. The twin stands
in for the account by its environment alone: endpoints, an access key, `kubectl` and Pulumi's engine
on the PATH, and `aws` as botocore has it (tests.aws_command). What a page has one write into the
description is merged into it; what a twin needs besides is in `FOR_A_TWIN`.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.spec import ROOT
from local import environment
from local import twin as twins
from local.aws import billing
from local.kubernetes.client import has_condition
from local.place import cache_directory
from local.twin import Twin
from tests import newcomer
from tests.integration.conftest import LOGS
from tests.integration.waiting import until
from tests.newcomer import README, TUTORIAL, Statement
from tests.person import Person

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(5400)]
AWS = """#!/bin/sh
PYTHONPATH={root} exec {python} -m tests.aws_command "$@"
"""
# One shell: where it stands and what it knows outlive each line.
LINE = """. "$HOME/.known" 2>/dev/null
cd "$(cat "$HOME/.where")"
{line}
code=$?
declare -p | grep -vE '^declare -[a-zA-Z]*r' > "$HOME/.known"
pwd > "$HOME/.where"
exit $code"""
DESCRIPTION = "clusters/try.yaml"
# Five layers on two busy cores.
LIMIT_SECONDS = 1800.0
# Pulumi's own clients of S3 and KMS read no endpoint from the environment: what a page says of
# them, and where on the twin that is.
ADDRESSES: Mapping[str, str] = {
    "login s3://$bucket": (
        'login "s3://$bucket?region=us-east-1&endpoint=$AWS_ENDPOINT_URL&s3ForcePathStyle=true"'
    ),
    "state?region=us-east-1": "state?region=us-east-1&endpoint=$AWS_ENDPOINT_URL",
}
ANSWERS: Mapping[str, list[str]] = {
    "stillwater init": ["\n"] * 10,
    "stillwater up try": ["yes\n"],
    "stillwater destroy try": ["try\n"],
    # Its cluster is the tutorial's: README's is asked for, and declined.
    "stillwater up prod": ["no\n"],
}
# What goes on until Ctrl-C, and what it has shown by then.
UNTIL: Mapping[str, str] = {"stillwater desk": "in your name.", "aws logs tail": '"released"'}
CODES: Mapping[str, tuple[int, ...]] = {
    # Half of what a preflight asks is not in the twin's AWS, and that is said.
    "stillwater preflight": (2,),
    "stillwater up prod": (1,),
    "stillwater desk": (130,),
    "aws logs tail": (130,),
    "stillwater doctor": (1,),  # the twin's operator runs outside the cluster
    # What a small cluster for trials may lack, and what the twin's AWS does not serve.
    "stillwater survey": (0, 1, 2),
}


@dataclass
class Road:
    """A person, the twin that is their account, and what their terminal showed."""

    twin: Twin
    person: Person
    began: float = field(default_factory=time.time)
    typed: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return Path(self.person.environment["HOME"])

    def description(self) -> Path:
        return Path((self.home / ".where").read_text().strip(), DESCRIPTION)

    def describe(self, *pieces: Mapping[str, Any]) -> None:
        """Write pieces into the description, as a person with an editor."""
        written = yaml.safe_load(self.description().read_text())
        for piece in pieces:
            _merge(written, piece)
        self.description().write_text(yaml.safe_dump(written, sort_keys=False))

    def types(self, line: str) -> str:
        """Type a line and read what it shows, which must end as the page says."""
        for named, here in ADDRESSES.items():
            line = line.replace(named, here)
        said = self.person.types(
            LINE.format(line=line),
            answers=_of(ANSWERS, line) or "",
            stops_at=_of(UNTIL, line),
            limit_seconds=LIMIT_SECONDS,
        )
        sys.stdout.write(f"$ {line}\n{said}\n")
        self.typed.append(line)
        assert self.person.code in (_of(CODES, line) or (0,)), said
        assert "Traceback" not in said
        return said


def _of(table: Mapping[str, Any], line: str) -> Any:
    return next((value for begins, value in table.items() if line.startswith(begins)), None)


def _merge(into: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for key, value in piece.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def for_a_twin(twin: Twin) -> Mapping[str, Any]:
    """Return what a description says of a twin where it would say something else of AWS."""
    place = twin.place
    return {
        # Every address of this network is one of this machine.
        "network": {"vpc_cidr": place.vpc_cidr},
        # Nobody here resolves the private zone's name.
        "kafka": {"listener": {"advertised_host": place.nlb_host}},
        "load_balancer": {"private_zone": None},
        # Charts that are in no registry a twin reaches.
        "strimzi": {"operator": "external", "disruption_budgets": "ours"},
        "cluster_autoscaler": False,
        # Machines boot in no time here: nobody waits a quarter of a minute for each look.
        "timings": {"tick_interval_seconds": 2, "post_condition_hold_seconds": 10},
    }


@pytest.fixture
def road(tools: None, machines: None, tmp_path: Path) -> Iterator[Road]:
    installed, programs = newcomer.install(tmp_path)
    newcomer.write_program(programs / "aws", AWS.format(root=ROOT, python=sys.executable))
    home = tmp_path / "home"
    home.mkdir()
    (home / ".where").write_text(str(home))
    with twins.running(lambda _sentence: None, keep_logs=LOGS / "newcomer") as running:
        account = {
            name: value
            for name, value in running.environment().items()
            # Where the state lives is for the page to say.
            if name not in {"PULUMI_BACKEND_URL", "PYTHONPATH"}
        }
        variables = {
            **account,
            "HOME": str(home),
            "PATH": f"{programs}:{account['PATH']}",
            "PYTHONPATH": str(installed),
            # Where the twin keeps its charts, which is no part of the account.
            "STILLWATER_CACHE": str(cache_directory()),
        }
        yield Road(running, Person(home, variables))


# --- what is held of each line, beside its exit code -------------------------------------------


def _nine_nodes(_road: Road, said: str) -> None:
    assert len(re.findall(r"^ip-\S+ +Ready\b", said, re.MULTILINE)) == 9


def _six_pods(_road: Road, said: str) -> None:
    ready = re.findall(r"^orders-(?:broker|controller)-[abc]-\d+ +1/1 +Running", said, re.MULTILINE)
    assert len(ready) == 6


def _seven_bindings(_road: Road, said: str) -> None:
    assert len(said.splitlines()) == 1 + 7


def _gates(_road: Road, said: str) -> None:
    assert len(re.findall(r"^target-health\S+=True$", said, re.MULTILINE)) == 2


def _whole(road: Road) -> None:
    """Wait until Kafka's pods are Ready, which the page expects to take ten minutes on AWS."""

    def ready() -> bool:
        asked = {"labelSelector": "strimzi.io/kind=Kafka"}
        pods = road.twin.api.get("/api/v1/namespaces/kafka/pods", **asked)["items"]
        return len(pods) == 6 and all(map(has_condition, pods))

    until(ready, "Kafka's pods are Ready", 300, road.twin.check_alive)


def _nothing_to_do(road: Road) -> None:
    _whole(road)
    assert "Nothing is to be done." in road.types("stillwater up try")


def _declined(_road: Road, said: str) -> None:
    assert "+ EKS cluster prod-kafka" in said
    assert "Nothing was changed: the answer was not 'yes'." in said


def _walked(road: Road, said: str) -> None:
    words = ("holding", "draining", "gating", "released")
    places = [said.index(f'"{word}"') for word in words]
    assert places == sorted(places)
    _whole(road)


def _over(_road: Road, said: str) -> None:
    assert "released" in said


def _healthy(_road: Road, said: str) -> None:
    assert "healthy" in said


def _nothing_left(road: Road, _said: str) -> None:
    assert road.twin.aws("eks").list_clusters()["clusters"] == []
    ec2 = road.twin.aws("ec2")
    ours = [{"Name": "tag:stillwater:environment", "Values": ["try"]}]
    assert ec2.describe_vpcs(Filters=ours)["Vpcs"] == []


def _billed(road: Road, said: str) -> None:
    assert "about" in said or "USD" in said
    assert (road.description().parents[1] / "out" / "report" / "index.html").is_file()


HOLDS: Mapping[str, Callable[[Road, str], None]] = {
    "kubectl get nodes": _nine_nodes,
    "kubectl -n kafka get pods": _six_pods,
    "kubectl -n kafka get targetgroupbindings": _seven_bindings,
    "kubectl -n kafka get pod orders": _gates,
    "stillwater up prod": _declined,
    "aws logs tail": _walked,
    "stillwater incidents": _over,
    "stillwater health": _healthy,
    "stillwater report": _billed,
    "stillwater destroy": _nothing_left,
}


def _bill(road: Road) -> None:
    """Deliver what the twin's machines cost to where the export would, as AWS does within a day."""
    made = billing.write_bill(
        road.twin.place,
        ec2=road.twin.aws("ec2"),
        eks=road.twin.aws("eks"),
        out=road.home / "bill",
        started_at=road.began,
        ended_at=time.time(),
        bytes_between_zones=0,
    )
    export, s3 = Path(made.path), road.twin.aws("s3")
    for path in export.rglob("*"):
        if path.is_file():
            s3.upload_file(
                str(path),
                f"try-orders-billing-{environment.ACCOUNT}",
                f"export/try-orders-bill/{path.relative_to(export).as_posix()}",
            )


def _before(road: Road, statement: Statement, ups: int) -> None:
    """Do what the page says between its commands: edit the description, wait for the bill."""
    line = statement.text
    if line.startswith("stillwater check"):
        road.describe(*newcomer.descriptions(TUTORIAL, "3"))
    if line.startswith("stillwater preflight"):  # What the page estimates is a cluster on AWS.
        road.describe(for_a_twin(road.twin))
    if line.startswith("stillwater up") and ups == 1:
        road.describe(*newcomer.descriptions(TUTORIAL, "6"))
    if line.startswith("stillwater up") and ups == 2:
        road.describe({"ephemeral": True})
    if line.startswith("stillwater report"):
        _bill(road)


def test_whoever_types_the_pages_gets_what_they_promise(road: Road) -> None:
    readme = [each.text for each in newcomer.typed_statements(README)]
    asked = readme.index("stillwater up prod") + 1
    begun = readme.index("stillwater init kafka --region us-east-1")
    # The rest of README is of a cluster that is there: the tutorial's, once it is.
    later = [*readme[:begun], *readme[asked:]]
    ups = 0
    for statement in newcomer.typed_statements(TUTORIAL):
        if statement.text.startswith("stillwater init"):
            # README's road begins where the state has a place.
            _at(road, "readme")
            for line in readme[begun:asked]:
                _hold(road, line)
            _at(road, "tutorial")
        if statement.text.startswith("stillwater destroy"):
            for line in later:
                _hold(road, line.replace(" prod", " try"))
        _before(road, statement, ups)
        _hold(road, statement.text, statement.shown)
        if statement.text.startswith("stillwater up"):
            ups += 1
            if ups == 1:
                _nothing_to_do(road)


def _at(road: Road, folder: str) -> None:
    (road.home / folder).mkdir()
    (road.home / ".where").write_text(str(road.home / folder))


def _hold(road: Road, line: str, shown: str = "") -> None:
    said = road.types(line)
    assert newcomer.unseen(shown + newcomer.guides("try").get(line, ""), said) == []
    check = _of(HOLDS, line)
    if check is not None:
        check(road, said)
