"""Reads the target groups behind some bindings into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from core.survey.account_facts import TargetGroup

GONE = "TargetGroupNotFound"
NETWORK = {"TCP", "TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"}
BY_BALANCER = "use_load_balancer_configuration"
CROSS_ZONE = "load_balancing.cross_zone.enabled"


def target_groups(client: Any, wanted: Iterable[str]) -> dict[str, TargetGroup]:
    """Return target groups by what their bindings call them; one that is gone is left out."""
    found = {called: _group(client, called) for called in sorted(wanted)}
    return {called: group for called, group in found.items() if group is not None}


def _group(client: Any, called: str) -> TargetGroup | None:
    key = "TargetGroupArns" if called.startswith("arn:") else "Names"
    try:
        # One by one: naming one that is gone would refuse the whole call.
        described = client.describe_target_groups(**{key: [called]})["TargetGroups"]
    except ClientError as error:
        if error.response["Error"]["Code"].startswith(GONE):
            return None
        raise
    if not described:
        return None
    item = described[0]
    answer = client.describe_target_group_attributes(TargetGroupArn=item["TargetGroupArn"])
    said = {pair["Key"]: pair["Value"] for pair in answer["Attributes"]}
    balancers = tuple(str(arn) for arn in item.get("LoadBalancerArns") or ())
    return TargetGroup(
        name=str(item["TargetGroupName"]),
        balancers=balancers,
        deregistration_seconds=int(said.get("deregistration_delay.timeout_seconds", "300")),
        ends_deregistered=_on(said, "deregistration_delay.connection_termination.enabled", "false"),
        ends_unhealthy=_on(
            said, "target_health_state.unhealthy.connection_termination.enabled", "true"
        ),
        preserves_client_ip=_on(said, "preserve_client_ip.enabled", "false"),
        cross_zone=_crosses(client, said, balancers),
        network=item.get("Protocol") in NETWORK,
    )


def _on(said: Mapping[str, str], key: str, default: str) -> bool:
    return said.get(key, default) == "true"


def _crosses(client: Any, said: Mapping[str, str], balancers: tuple[str, ...]) -> bool:
    """Say whether every balancer of a group sends to all zones, where it leaves that to them."""
    own = said.get(CROSS_ZONE, BY_BALANCER)
    if own != BY_BALANCER:
        return own == "true"
    answers = [
        client.describe_load_balancer_attributes(LoadBalancerArn=arn)["Attributes"]
        for arn in balancers
    ]
    return all(
        {pair["Key"]: pair["Value"] for pair in each}.get(CROSS_ZONE) == "true" for each in answers
    )
