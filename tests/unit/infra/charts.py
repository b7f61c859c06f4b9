"""The values that public charts know, to find one of ours that none of them reads."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[2] / "data" / "charts"


def unknown_values(chart: str, values: Mapping[str, Any]) -> list[str]:
    """Return the paths of values that a chart's own values.yaml does not have.

    A default that is empty takes anything below it.
    """
    known = yaml.safe_load((CHARTS / f"{chart}.values.yaml").read_text())
    return list(_unknown(values, known, ""))


def _unknown(values: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, value in values.items():
        path = f"{where}{key}"
        if key not in known:
            yield path
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], f"{path}.")
