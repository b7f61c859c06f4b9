"""Gives every layer its start: its spec, its providers, and what earlier layers exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cost import pricing
from core.ground.naming import FOUNDATION
from infra import iam, tags
from infra.eks.cluster import kubernetes_provider
from infra.spec import ROOT
from infra.tags import cluster_tags


@dataclass(frozen=True)
class Earlier:
    """The outputs of an earlier layer's stack."""

    stack: str
    outputs: pulumi.Output[Mapping[str, object]]

    def text(self, name: str) -> pulumi.Output[str]:
        return self.outputs.apply(lambda known: str(self._require(known, name)))

    def text_at(self, name: str, key: str) -> pulumi.Output[str]:
        """Return one value of an exported mapping, such as the subnet of a zone."""
        return self.outputs.apply(lambda known: self._entry(self._require(known, name), name, key))

    def _require(self, known: Mapping[str, object], name: str) -> object:
        if known.get(name) is None:
            raise pulumi.RunError(
                f"Stack {self.stack} exports no {name}: run `pulumi up -s {self.stack}` first."
            )
        return known[name]

    def _entry(self, mapping: object, name: str, key: str) -> str:
        if isinstance(mapping, Mapping) and key in mapping:
            return str(mapping[key])
        problem = f"Stack {self.stack} exports no {name} for {key}"
        if pulumi.runtime.is_dry_run():
            # Whoever adds a zone may see what it means for every layer before changing the first.
            pulumi.log.warn(f"{problem} yet; this preview goes on without it.")
            return cast("str", pulumi.UNKNOWN)
        raise pulumi.RunError(f"{problem}: run `pulumi up -s {self.stack}` first.")


class Layer:
    """One stack's context; providers and references are made when first asked for."""

    def __init__(self, spec: ClusterSpec, root: Path = ROOT) -> None:
        self.spec = spec
        # The price file of the user's directory, if it has one.
        self.own_prices = pricing.own_file(root)
        self.tags = cluster_tags(spec)

    @cached_property
    def aws(self) -> aws.Provider:
        """AWS in the spec's region, tagging everything it creates."""
        return aws.Provider(
            "aws",
            region=self.spec.region,
            profile=aws.config.profile,
            default_tags=aws.ProviderDefaultTagsArgs(tags=self.tags.everywhere),
        )

    @cached_property
    def account(self) -> iam.Account:
        return iam.Account.current(pulumi.InvokeOptions(provider=self.aws), self.spec.region)

    @cached_property
    def kubernetes(self) -> k8s.Provider:
        """The cluster that the foundation made."""
        foundation = self.earlier(FOUNDATION)
        return kubernetes_provider(
            "kubernetes",
            eks_cluster=self.spec.prefix,
            region=self.spec.region,
            endpoint=foundation.text("eks_endpoint"),
            ca=foundation.text("eks_ca"),
            profile=aws.config.profile,
        )

    @property
    def aws_opts(self) -> pulumi.ResourceOptions:
        return self._options(self.aws)

    @property
    def both_opts(self) -> pulumi.ResourceOptions:
        return self._options(self.aws, self.kubernetes)

    def _options(self, *providers: pulumi.ProviderResource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(
            tags.options(ephemeral=self.spec.ephemeral),
            pulumi.ResourceOptions(providers=list(providers)),
        )

    def earlier(self, layer: str) -> Earlier:
        if layer not in self._references:
            stack = f"{self.spec.environment}-{layer}"
            path = f"{pulumi.get_organization()}/{pulumi.get_project()}/{stack}"
            self._references[layer] = Earlier(stack, pulumi.StackReference(path).outputs)
        return self._references[layer]

    @cached_property
    def _references(self) -> dict[str, Earlier]:
        return {}

    def private_subnet_ids(self) -> dict[str, pulumi.Output[str]]:
        """Return the foundation's private subnets by zone."""
        foundation = self.earlier(FOUNDATION)
        return {
            zone: foundation.text_at("private_subnet_ids", zone)
            for zone in self.spec.availability_zones
        }
