"""The report: every job on one month (spark.jobs.every), and the story told of what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from spark.jobs import every
from spark.jobs.every import Inputs
from spark.report import story
from spark.report.document import Document
from spark.report.evidence import Evidence
from spark.tables import Store

__all__ = ["Inputs", "Made", "run"]


@dataclass(frozen=True, slots=True)
class Made:
    """A report, and the figures a caller may hold it against the bill by."""

    document: Document
    evidence: Evidence
    bill_total: Decimal
    # Months that are final and unchanged, and were not read again.
    kept: Sequence[str] = ()


def run(store: Store, inputs: Inputs, *, finished: bool = False) -> Made:
    """Make the report of one month; every table of that month in the store is replaced.

    Of `finished` tables, which every job has made already, it is told alone. Raises InvalidInput
    for a bill, a month or an input that cannot be read.
    """
    known = every.told_month(store, inputs) if finished else every.run(store, inputs)
    return Made(story.report_document(known.evidence), known.evidence, known.bill_total, known.kept)
