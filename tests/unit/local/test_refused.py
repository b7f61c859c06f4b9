"""What each service of AWS refuses beyond its model; what only looks like it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from local.refusals import gate
from local.refusals.refusal import Wanted
from tests.unit.local import (
    refused_clusters,
    refused_edges,
    refused_events,
    refused_forms,
    refused_identity,
    refused_matching,
    refused_messages,
    refused_needing,
    refused_nodes,
    refused_policies,
    refused_schema,
    refused_services,
    refused_spelling,
    refused_stores,
    refused_traffic,
    refused_watching,
    refused_words,
)
from tests.unit.local.seeded_inputs import ALARM

TABLES = (
    *(refused_clusters, refused_events, refused_forms, refused_messages, refused_policies),
    *(refused_schema, refused_services, refused_stores, refused_traffic, refused_watching),
    *(refused_needing, refused_spelling, refused_words, refused_identity, refused_matching),
    *(refused_edges, refused_nodes),
)
REFUSED = [pytest.param(*row, id=name) for t in TABLES for name, row in t.REFUSED.items()]
TAKEN = [pytest.param(*row, id=name) for t in TABLES for name, row in t.TAKEN.items()]


@pytest.mark.parametrize(("token", "inputs", "code"), REFUSED)
def test_what_a_service_refuses_is_refused_with_its_code(
    token: str, inputs: Mapping[str, Any], code: str
) -> None:
    found = gate.refusals(Wanted(f"aws:{token}", "seeded", inputs))
    assert code in {refusal.code for refusal in found}, found


@pytest.mark.parametrize(("token", "inputs"), TAKEN)
def test_what_only_looks_like_it_is_taken(token: str, inputs: Mapping[str, Any]) -> None:
    found = gate.refusals(Wanted(f"aws:{token}", "seeded", inputs))
    assert [refusal.sentence for refusal in found] == []


@pytest.mark.parametrize("interval", ["often", [], {}])
def test_a_value_that_no_table_can_read_is_refused_and_no_traceback(interval: object) -> None:
    group = {
        "name": "orders",
        "port": 9094,
        "protocol": "TCP",
        "targetType": "ip",
        "vpcId": "vpc-0123456789abcdef0",
        "healthCheck": {"protocol": "TCP", "port": "traffic-port", "interval": interval},
    }
    found = gate.refusals(Wanted("aws:lb/targetGroup:TargetGroup", "seeded", group))
    assert any("another type or form" in refusal.sentence for refusal in found), found


def test_an_expression_that_is_nested_without_end_is_refused_and_no_traceback() -> None:
    alarm = {**ALARM, "metricQueries": [{"id": "e1", "expression": "(" * 2000, "returnData": True}]}
    assert gate.refusals(Wanted("aws:cloudwatch/metricAlarm:MetricAlarm", "seeded", alarm))
