"""Renders a report as one self-contained HTML page, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import jinja2

from core.naming import CLUSTER_TAG, POOL_TAG
from core.pricing import plain
from spark.report import plot
from spark.report.model import Report, Share
from spark.transforms.attribute import Attribution
from spark.transforms.classify import Component

OWNERS_SHOWN = 200

MEANINGS = {
    Component.BROKER_COMPUTE: "EC2 hours of Kafka's nodes; an instance without our tags counts "
    "here too, and as unattributed",
    Component.GP3_STORAGE: "gp3 volumes, per provisioned GB-month",
    Component.GP3_IOPS: "gp3 IOPS above the 3,000 included",
    Component.GP3_THROUGHPUT: "gp3 throughput above the 125 MiB/s included",
    Component.OTHER_VOLUMES: "EBS volumes of other types, with their IOPS",
    Component.SNAPSHOTS: "EBS snapshots, per GB-month",
    Component.INTER_AZ: "bytes between availability zones, billed on each side",
    Component.LOAD_BALANCER: "load balancer hours and capacity units",
    Component.PRIVATELINK: "interface endpoints by the hour and by the byte",
    Component.NAT_GATEWAY: "NAT gateways by the hour and by the byte",
    Component.CONTROL_PLANE: "EKS clusters by the hour",
    Component.REPORTS: "EMR Serverless, on which these reports run",
    Component.SPLIT: "a pod's share of its node, a second view that costs nothing of its own",
    Component.OTHER: "all else on the bill: system nodes, taxes, credits, refunds and fees too",
    Component.UNREADABLE: "rows whose cost can be read but not their place",
}


def write(report: Report, path: Path) -> Path:
    """Write the page and return where it is."""
    path.write_text(render(report), encoding="utf-8")
    return path


def render(report: Report) -> str:
    """Return the page: what it cost, the split, whose it is, and what could not be read."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spark.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    components, owners = report.components(), report.owners()
    places = decimal_places(report.billed)
    return environment.get_template("cost.html.j2").render(
        report=report,
        story=story(report),
        components=components,
        owners=owners[:OWNERS_SHOWN],
        owners_left_out=max(0, len(owners) - OWNERS_SHOWN),
        plot=plot.by_component(components, report.currency),
        meanings={component.value: meaning for component, meaning in MEANINGS.items()},
        attribution=Attribution,
        headline=money(report.billed, headline_places(report.billed)),
        money=lambda amount: money(amount, places),
        exact=lambda amount: f"{plain(amount):f}",
        percent=lambda amount: percent(amount, report.billed),
    )


def story(report: Report) -> list[str]:
    """Return the page's first sentences: what it cost, on what, whose, and whether it adds up."""
    places = headline_places(report.billed)

    def said(amount: Decimal) -> str:
        return f"{money(amount, places)} {report.currency}"

    months = " and ".join(report.periods) or "an unknown month"
    sentences = [f"The bill of {months} comes to {said(report.billed)}."]
    known = [s for s in report.components() if s.name != Component.OTHER.value and s.billed > 0]
    if known:
        largest = max(known, key=lambda share: share.billed)
        sentences.append(
            f"The largest of Kafka's parts is {largest.name}: {said(largest.billed)}, "
            f"{percent(largest.billed, report.billed)} of it."
        )
    sentences.append(_attribution(report, said))
    whose = "the total of what can be read" if report.rows_without_cost else "the bill's total"
    sentences.append(
        f"All {report.rows:,} rows of the bill are in the table once, and it comes to {whose} "
        f"exactly."
    )
    if report.bad_rows:
        sentences.append(_bad_rows(report))
    return sentences


def _attribution(report: Report, said: Callable[[Decimal], str]) -> str:
    if all(line.attribution is Attribution.NOBODY for line in report.lines):
        return (
            f"No charge carries the tag {CLUSTER_TAG}, so whose it is remains unknown; activate "
            f"{CLUSTER_TAG} and {POOL_TAG} as cost allocation tags."
        )
    pools = report.attributed(Attribution.NODE_POOL)
    shared = report.attributed(Attribution.CLUSTER)
    nobody = report.attributed(Attribution.NOBODY)
    rest = f"{said(nobody)} to nobody that a tag names" if nobody else "nothing is unattributed"
    return (
        f"{said(pools)} belongs to Kafka's node pools and {said(shared)} to a cluster as a whole; "
        f"{rest}."
    )


def _bad_rows(report: Report) -> str:
    rows = "1 row" if report.bad_rows == 1 else f"{report.bad_rows:,} rows"
    sentence = f"{rows} could not be read"
    if report.rows_without_cost:
        sentence += f"; the cost of {report.rows_without_cost:,} is unknown and in no total"
    return f"{sentence}."


def as_text(report: Report) -> str:
    """Return the components as a table for a terminal, 78 columns wide at most."""
    places = decimal_places(report.billed)
    rows = [_text_row(share, places) for share in report.components()]
    total = Share("total", report.rows, report.billed, report.amortised, {})
    heading = f"{'component':<20}{'rows':>10}{'billed':>18}{'amortised':>18}"
    lines = [*story(report), "", heading, *rows, _text_row(total, places)]
    return "\n".join(lines)


def _text_row(share: Share, places: int) -> str:
    billed, amortised = money(share.billed, places), money(share.amortised, places)
    return f"{share.name:<20}{share.charges:>10,}{billed:>18}{amortised:>18}"


def decimal_places(total: Decimal) -> int:
    """Return how many places show a bill of this size: cents, or less for a bill of cents."""
    if abs(total) >= 100:
        return 2
    return 4 if abs(total) >= 1 else 6


def headline_places(total: Decimal) -> int:
    return 2 if abs(total) >= 1 else decimal_places(total)


def money(amount: Decimal, places: int) -> str:
    """Return an amount for reading, rounded half to even; a real minus for what is given back."""
    if not amount:
        return "0"
    rounded = amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    sign = "\N{MINUS SIGN}" if rounded < 0 else ""
    return f"{sign}{abs(rounded):,}"


def percent(amount: Decimal, of: Decimal) -> str:
    return f"{amount / of:.1%}".replace("-", "\N{MINUS SIGN}") if of else "\N{EN DASH}"
