"""Brings the definitions in a chart's `crds/` folder to the version that the program pins.

Helm makes them with the first install and never again (helm.sh, Custom Resource Definitions), so
a newer controller would meet the fields of an older one. They come from the chart itself, rendered
as the release is; everything else it renders is the release's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

KIND = "CustomResourceDefinition"
# Helm made those that stand already, and the API server keeps their fields for it.
PATCH_FORCE = "pulumi.com/patchForce"


@dataclass(frozen=True, kw_only=True)
class ChartWithDefinitions:
    chart: str
    version: str
    repository: str | None = None
    # As much as its templates need to render at all.
    values: Mapping[str, Any] = field(default_factory=dict)


def definitions(
    name: str, args: ChartWithDefinitions, parent: pulumi.Resource
) -> pulumi.Output[Sequence[pulumi.Input[pulumi.Resource]]]:
    """Apply a chart's definitions and return them: what its release must wait for."""
    chart = k8s.helm.v3.Chart(
        name,
        k8s.helm.v3.ChartOpts(
            chart=args.chart,
            version=args.version,
            fetch_opts=k8s.helm.v3.FetchOpts(repo=args.repository),
            values=dict(args.values),
            transformations=[_definitions_alone],
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return chart.ready


def _definitions_alone(rendered: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
    if rendered["kind"] != KIND:
        rendered.clear()
        rendered.update(apiVersion="v1", kind="List", items=[])
        return
    metadata = rendered["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), PATCH_FORCE: "true"}
    # With a definition goes every object of its kind, Kafka itself among them; Helm keeps it too.
    opts.retain_on_delete = True
