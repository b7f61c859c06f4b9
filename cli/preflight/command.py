"""Runs a preflight and shows it: a line per finding for people, one object for programs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.findings import counted, show_findings
from cli.preflight.needs import needs_of
from cli.preflight.read import CLIENT, Reader
from cli.target import Target
from core.checks.finding import Finding, Weight, exit_code
from core.checks.table import findings
from core.ground.errors import InvalidInput, StillwaterError
from core.model.facts import ClusterFacts


@dataclass(frozen=True, slots=True)
class Preflight:
    """What one preflight found."""

    cluster: str
    account: str
    caller: str
    region: str
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        return exit_code(self.findings)

    @property
    def refused(self) -> list[Finding]:
        return [each for each in self.findings if each.weight is Weight.REFUSED]


def examine(target: Target, console: Console) -> Preflight:
    """Ask the account of a target everything; raise StillwaterError without an identity."""
    spec = target.spec

    def clients(service: str, region: str | None = None) -> Any:
        # boto3's stubs know each service by its name alone.
        session: Any = target.session
        return session.client(
            service,
            region_name=region or spec.region,
            endpoint_url=target.endpoint_url,
            config=CLIENT,
        )

    reader = Reader(
        lambda account: needs_of(spec, account),
        clients,
        target.session.region_name or spec.region,
    )
    with console.status("Asking the account") as status:
        needs, account = reader.read(status.update)
    found = findings(ClusterFacts(needs=needs, account=account, read_at=time.time()))
    return Preflight(spec.prefix, account.number, account.caller, account.region, found)


def before_up(target: Target, console: Console) -> None:
    """Stop an `up` that the account would refuse; say what is not known, and go on."""
    try:
        done = examine(target, console)
    except StillwaterError as error:
        raise InvalidInput([f"{error} Nothing was made."]) from None
    show(done, console)
    if done.refused:
        problem = (
            f"The account would refuse {done.cluster}, so nothing was made: mend the above, or go "
            f"on all the same with --skip-preflight."
        )
        raise InvalidInput([problem])


def as_json(done: Preflight) -> str:
    """Return a preflight as one JSON object."""
    return json.dumps({"exit_code": done.exit_code, **asdict(done)}, indent=2, ensure_ascii=False)


def show(done: Preflight, console: Console) -> None:
    """Print what stands in the way, then what is not known, then a verdict."""
    show_findings(done.findings, console)
    console.print(Text(verdict(done)), soft_wrap=True)


def verdict(done: Preflight) -> str:
    """Return the last line: how much of what, and of which account."""
    where = f"{done.cluster} in account {done.account}, {done.region}, as {done.caller}"
    return f"{where}: {counted(done.findings) or 'nothing stands in the way'}."
