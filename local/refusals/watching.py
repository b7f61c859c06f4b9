"""Checks what alarms look at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.fields import values
from local.refusals.limits import first_of, limit
from local.refusals.refusal import Refusal, Wanted

_WATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/"
_PERCENTILE = re.compile(
    r"(p|tm|tc|ts|wm)(100|\d{1,2})(\.\d{0,10})?|IQM|(PR|TC|TS|TM|WM)\(.*\)", re.DOTALL
)
_STATISTICS = frozenset({"Average", "Maximum", "Minimum", "SampleCount", "Sum"})
_SHORT_PERIODS = frozenset({1, 5, 10, 20, 30})
_IDENTIFIER = re.compile(r"(?<![\w.\"'])([a-z][A-Za-z0-9_]*)\b(?!\s*\()")
_ID = re.compile(r"[a-z][A-Za-z0-9_]{0,254}")
_MISSING = frozenset({"breaching", "notBreaching", "ignore", "missing"})


@limit("cloudwatch/metricAlarm:MetricAlarm", source=f"{_WATCH}API_PutMetricAlarm.html")
def parts_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """One statistic, a period and a threshold; actions by ARN; a word for missing data."""
    inputs = wanted.inputs
    plain, extended = inputs.get("statistic"), inputs.get("extendedStatistic")
    alone = inputs.get("metricName") is not None
    queries = inputs.get("metricQueries") or ()
    kinds = ("alarmActions", "okActions", "insufficientDataActions")
    actions = [str(each) for kind in kinds for each in inputs.get(kind) or ()]
    missing = inputs.get("treatMissingData", "missing")
    static = not inputs.get("thresholdMetricId")
    fast = str(inputs.get("namespace")).startswith("AWS/") and inputs.get("period") in {10, 20, 30}
    yield from first_of(
        "PutMetricAlarm",
        "ValidationError",
        (
            alone and plain is None and extended is None,
            "At least one of the parameters Statistic, ExtendedStatistic must be specified.",
            "statistic",
        ),
        (
            plain is not None and extended is not None,
            "Exactly one of the parameters Statistic and ExtendedStatistic may be specified.",
            "extendedStatistic",
        ),
        (
            extended is not None and _PERCENTILE.fullmatch(str(extended)) is None,
            f"The value {extended} for parameter ExtendedStatistic is not supported.",
            "extendedStatistic",
        ),
        (alone and inputs.get("period") is None, "Period must be specified.", "period"),
        (
            static and inputs.get("threshold") is None,
            "The parameter Threshold must be specified.",
            "threshold",
        ),
        (
            missing not in _MISSING,
            (
                f"The value {missing} is not supported for TreatMissingData parameter. Supported "
                f"values are [breaching, notBreaching, ignore, missing]."
            ),
            "treatMissingData",
        ),
        (
            any(not action.startswith("arn:") for action in actions),
            "Invalid arn syntax: " + next((a for a in actions if not a.startswith("arn:")), ""),
            "alarmActions",
        ),
        (
            fast,
            'Only a period greater than 60s is supported for metrics in the "AWS/" namespaces',
            "period",
        ),
        (
            len({query["id"] for query in queries}) < len(queries),
            "The ids of the elements of the Metrics list must be unique.",
            "metricQueries",
        ),
    )


@limit("cloudwatch/metricAlarm:MetricAlarm", source=f"{_WATCH}API_MetricDataQuery.html")
def queries_of_an_alarm(wanted: Wanted) -> Iterator[Refusal]:
    """One metric, or 20 queries of a metric or an expression each, and names that are given."""
    queries = [*values(wanted.inputs, "metricQueries.*")]
    stats = [str(each) for each in values(queries, "*.metric.stat")]
    unknown = [each for each in stats if not is_statistic(each)]
    both = [e for e in queries if bool(e.get("metric")) == bool(e.get("expression"))]
    ids = {str(each.get("id")) for each in queries}
    strange = [
        (each.get("id"), name)
        for each in queries
        for name in names_in(str(each.get("expression") or ""))
        if name not in ids
    ]
    lasting = wanted.inputs.get("thresholdMetricId")
    named = [*values(queries, "*.metric.dimensions"), wanted.inputs.get("dimensions") or {}]
    unseen = [name for each in named for name, value in each.items() if not _is_plain(name, value)]
    yield from first_of(
        "PutMetricAlarm",
        "ValidationError",
        (
            bool(queries) == bool(wanted.inputs.get("metricName")),
            "Exactly one of MetricName and Metrics must be specified",
            "metricQueries",
        ),
        (
            len(queries) > 20,
            "The collection Metrics must not have a size greater than 20.",
            "metricQueries",
        ),
        (
            not all(map(_ID.fullmatch, ids)),
            (
                "The id of a metric data query must begin with a lower-case letter and have "
                "letters, digits and underscores alone"
            ),
            "metricQueries",
        ),
        (
            both,
            "Each metric data query must have exactly one of MetricStat and Expression.",
            "metricQueries",
        ),
        (
            unknown,
            f"The value {unknown[:1]} for parameter MetricStat.Stat is not supported.",
            "metricQueries",
        ),
        (
            strange,
            (
                f"Error in expression '{strange[0][0] if strange else ''}': Undefined variable "
                f"{strange[0][1] if strange else ''}."
            ),
            "metricQueries",
        ),
        (
            unseen,
            f"The dimension {unseen[:1]} must be ASCII and may not begin with a colon.",
            "metricQueries",
        ),
        (
            wanted.inputs.get("comparisonOperator") in OF_A_BAND and not lasting,
            "ThresholdMetricId must be specified for alarms on anomalies.",
            "thresholdMetricId",
        ),
        (
            lasting and str(lasting) not in ids,
            f"ThresholdMetricId {lasting} must be the id of a metric data query.",
            "thresholdMetricId",
        ),
        (
            len(stats) > 10,
            "An alarm may look at up to 10 metrics.",
            "metricQueries",
        ),
    )


OF_A_BAND = frozenset(
    {
        *("GreaterThanUpperThreshold", "LessThanLowerOrGreaterThanUpperThreshold"),
        "LessThanLowerThreshold",
    }
)


def _is_plain(name: str, value: object) -> bool:
    return f"{name}{value}".isascii() and not str(name).startswith(":")


def is_period(seconds: int) -> bool:
    """Say whether CloudWatch keeps series of a period."""
    return seconds in _SHORT_PERIODS or (seconds > 0 and seconds % 60 == 0)


def is_statistic(written: str) -> bool:
    """Say whether CloudWatch knows a statistic."""
    return written in _STATISTICS or _PERCENTILE.fullmatch(written) is not None


def names_in(expression: str) -> list[str]:
    """Return the ids that an expression uses; a query of Metrics Insights uses none."""
    if re.match(r"\s*SELECT\b", expression, re.IGNORECASE):
        return []
    return _IDENTIFIER.findall(re.sub(r"\"[^\"]*\"|'[^']*'", "", expression))
