"""Renders what a function is told: each field of its settings type by the field's own name."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pulumi

from core.cluster.operated import Operated
from core.settings.functions import ApiServer
from infra.functions.definition import Definition

Late = Mapping[str, pulumi.Input[Any]]


def settings(definition: Definition, cluster: Operated, late: Late) -> pulumi.Output[Any]:
    """Return a function's settings; `late` are the fields that other resources say."""
    told = fields_of(definition, cluster, late)
    return pulumi.Output.all(**told).apply(lambda found: definition.settings(**found))


def fields_of(definition: Definition, cluster: Operated, late: Late) -> Late:
    """Return the fields of a function's settings, and no other."""
    known: Late = {
        **_shared_fields(cluster, definition.name),
        **definition.own_settings(cluster),
        **late,
    }
    return {
        each.name: known[each.name] for each in fields(definition.settings) if each.name in known
    }


def _shared_fields(cluster: Operated, function: str) -> dict[str, Any]:
    """Return the fields that a description says to several functions."""
    return {
        "prefix": cluster.prefix,
        "cluster": cluster.name,
        "region": cluster.region,
        "namespace": cluster.namespace,
        "kafka": cluster.identities.get(function),
        "policy": cluster.policy,
        "level": cluster.level,
        "gated": cluster.eviction_gate is not None,
        "instances": cluster.instances,
        "node_claims": cluster.node_claims,
        **({} if cluster.pool_labels is None else {"pool_labels": cluster.pool_labels}),
    }


def in_cluster(
    eks_cluster: str,
    endpoint: pulumi.Input[str],
    authority: pulumi.Input[str],
    bootstrap: pulumi.Input[str],
) -> Late:
    """Return what other layers say of the API server and of Kafka."""
    addresses = pulumi.Output.from_input(bootstrap).apply(
        lambda known: tuple(address.strip() for address in known.split(","))
    )
    return {"api": api_server(eks_cluster, endpoint, authority), "kafka_bootstrap": addresses}


def api_server(
    eks_cluster: str, endpoint: pulumi.Input[str], authority: pulumi.Input[str]
) -> pulumi.Output[ApiServer]:
    """Return the API server, whose authority EKS tells in base64."""
    return pulumi.Output.all(endpoint, authority).apply(
        lambda known: ApiServer(
            eks_cluster=eks_cluster, endpoint=known[0], ca_pem=base64.b64decode(known[1]).decode()
        )
    )
