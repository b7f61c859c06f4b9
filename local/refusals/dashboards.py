"""CloudWatch's dashboards: how many widgets and metrics, and what each kind of widget has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.documents import text
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted
from local.refusals.widgets import is_time, wrongs

WIDGETS, METRICS_OF_A_WIDGET, METRICS = 500, 500, 2_500
GRID, HEIGHT, ALARMS = 24, 1_000, 100
PLACES = (("x", 0, GRID - 1), ("y", 0, 10**6), ("width", 1, GRID), ("height", 1, HEIGHT))
VIEWS = frozenset({"bar", "gauge", "pie", "singleValue", "table", "timeSeries"})
# What a kind of widget must say, each by one of these names.
NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "alarm": (("alarms",),),
    "custom": (("endpoint",),),
    "explorer": (("metrics",), ("labels",)),
    "log": (("region",), ("query",)),
    "metric": (("region",), ("metrics", "annotations")),
    "text": (("markdown",),),
}


@limit(
    "cloudwatch/dashboard:Dashboard",
    source="https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html",
)
def body_of_a_dashboard(wanted: Wanted) -> Iterator[Refusal]:
    """JSON of widgets that have a place on the grid and what their kind needs.

    Counts: CloudWatch service quotas, metrics per dashboard widget and across all widgets.
    """
    try:
        body = json.loads(text(wanted.inputs["dashboardBody"]))
        widgets = list(body.get("widgets", []))
    except (ValueError, AttributeError, TypeError):
        found = ["Should be a JSON object"]
    else:
        found = [*_of_times(body)]
        found += [wrong for at, each in enumerate(widgets) for wrong in _wrong(at, each)]
        if len(widgets) > WIDGETS:
            found.append(f"/widgets: Should NOT have more than {WIDGETS} items")
        if sum(_metrics(each) for each in widgets if isinstance(each, dict)) > METRICS:
            found.append(f"A dashboard may have up to {METRICS} metrics across all widgets")
    if found:
        message = "The dashboard body is invalid, there are validation errors: "
        message += "; ".join(found[:5])
        yield Refusal("PutDashboard", "InvalidParameterInput", message, "dashboardBody")


_RELATIVE = re.compile(r"-P(\d+[YMWD])*(T(\d+[HMS])+)?")


def _of_times(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the time that a dashboard shows.

    Source: CloudWatch-Dashboard-Body-Structure: -PT8H, -P7D, or an ISO 8601 timestamp.
    """
    start, end = body.get("start"), body.get("end")
    if body.get("periodOverride", "auto") not in {"auto", "inherit"}:
        yield "/periodOverride: Should be equal to one of the allowed values"
    if start is not None and not (_RELATIVE.fullmatch(str(start)) or is_time(start)):
        yield "/start: Should match a relative or an absolute time"
    if end is not None and not is_time(end):
        yield "/end: Should be an ISO 8601 timestamp"
    if end is not None and (start is None or str(start).startswith("-")):
        yield "/end: Must not be specified without an absolute start"


def _wrong(at: int, widget: Any) -> Iterator[str]:
    where = f"/widgets/{at}"
    if not isinstance(widget, dict):
        yield f"{where}: Should be object"
        return
    kind, properties = str(widget.get("type")), widget.get("properties")
    if kind not in NEEDED:
        yield f"{where}/type: Should be equal to one of the allowed values"
        return
    for name, least, most in PLACES:
        value = widget.get(name)
        if value is not None and not (isinstance(value, int) and least <= value <= most):
            yield f"{where}/{name}: Should be an integer from {least} to {most}"
    told = properties if isinstance(properties, dict) else {}
    if kind == "metric":
        yield from _of_a_graph(where, told)
    yield from (f"{where}/properties{wrong}" for wrong in wrongs(kind, told))
    if kind == "alarm" and len(told.get("alarms") or ()) > ALARMS:
        yield f"{where}/properties/alarms: Should NOT have more than {ALARMS} items"
    for names in NEEDED[kind]:
        if not any(name in told for name in names):
            yield f"{where}/properties: Should have required property '{names[0]}'"
    if _metrics(widget) > METRICS_OF_A_WIDGET:
        yield f"{where}/properties/metrics: Should NOT have more than {METRICS_OF_A_WIDGET} items"


def _of_a_graph(where: str, told: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with how a graph is drawn."""
    where = f"{where}/properties"
    if told.get("view", "timeSeries") not in VIEWS:
        yield f"{where}/view: Should be equal to one of the allowed values"
    if not isinstance(told.get("stacked", False), bool):
        yield f"{where}/stacked: Should be boolean"
    metrics = told.get("metrics", [])
    if not isinstance(metrics, list) or not all(isinstance(each, list) for each in metrics):
        yield f"{where}/metrics: Should be an array of arrays"


def _metrics(widget: Mapping[str, Any]) -> int:
    told = widget.get("properties")
    metrics = told.get("metrics") if isinstance(told, dict) else None
    return len(metrics) if isinstance(metrics, list) else 0
