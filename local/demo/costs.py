"""Reports the demo's cost: its simulated bill, what its brokers and its ledger said.

The report is the one `stillwater report` makes, of the twin's own run: the rotation is in it with
the seconds and bytes that the brokers counted.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.cluster import ClusterSpec, parse
from core.cluster.report_facts import report_facts
from core.cost import pricing
from core.incidents.record import Incident
from handlers.incidents.broom import archive_key, archive_line
from local import environment
from local.aws import billing
from local.demo import spec as demo_spec
from local.twin import Twin

if TYPE_CHECKING:
    from spark.jobs.every import Known

FOLDER, BILL, HISTORY = "report", "bill", "history"


@dataclass(frozen=True, slots=True)
class RotationFigures:
    """What the report says of the demo's one rotation; None of what it could not tell."""

    down_seconds: float | None
    catch_up_seconds: float | None
    moved_bytes: int | None


@dataclass(frozen=True, slots=True)
class Costs:
    """The bill's total and the report's, which must agree, and the rotation in it."""

    bill_total: str
    report_total: str
    rotation: RotationFigures | None


def report(
    twin: Twin,
    output: Path,
    window: tuple[float, float],
    bytes_between_zones: int,
    metrics: Path,
    incident: Incident | None,
) -> Costs:
    """Write the simulated bill of what really ran, and the report on it to output/report."""
    from spark.jobs import every  # noqa: PLC0415 - imports PySpark
    from spark.tables import ParquetStore  # noqa: PLC0415 - the same

    forget(output)
    bill = billing.write_bill(
        twin.place,
        ec2=twin.aws("ec2"),
        eks=twin.aws("eks"),
        out=output / BILL,
        started_at=window[0],
        ended_at=window[1],
        bytes_between_zones=bytes_between_zones,
    )
    spec = parse(demo_spec.spec(twin.place))
    folder = output / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    inputs = every.Inputs(
        bill=bill.path,
        metrics=str(metrics),
        history=str(file_incident(output / HISTORY, spec, incident)),
        facts=report_facts(spec),
        book=pricing.book(environment.REGION),
    )
    made = every.run(ParquetStore(str((folder / "tables").resolve())), inputs)
    _write(made, folder)
    return Costs(
        f"{bill.total.normalize():f}",
        f"{made.evidence.report.billed.normalize():f}",
        _seen_rotation(made),
    )


def forget(output: Path) -> None:
    """Remove what an earlier run wrote: its bill has a name of its own, and would be read too."""
    for name in (BILL, HISTORY, FOLDER):
        shutil.rmtree(output / name, ignore_errors=True)


def file_incident(folder: Path, spec: ClusterSpec, incident: Incident | None) -> Path:
    """File the incident as the sweep will within a minute of its end."""
    folder.mkdir(parents=True, exist_ok=True)
    if incident is not None and not incident.open:
        path = folder / archive_key(incident)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(archive_line(incident, spec.prefix) + "\n")
    return folder


def _write(made: Known, folder: Path) -> None:
    from spark.report import formats  # noqa: PLC0415 - draws with matplotlib

    for kind in formats.Format:
        text = formats.write(made.document, kind)
        (folder / kind.file_name).write_text(text, encoding="utf-8")


def _seen_rotation(made: Known) -> RotationFigures | None:
    rows = made.evidence.resync
    if not rows:
        return None
    row = rows[-1]
    return RotationFigures(
        down_seconds=row.down_seconds,
        catch_up_seconds=row.catch_up_seconds,
        moved_bytes=row.moved_bytes,
    )
