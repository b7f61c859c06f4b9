"""The namespace everything of Kafka lives in.

It stands apart from Kafka, because what must be there before Kafka's first pod lives in it too: the
operator's rights, the load balancer's bindings. Its labels say who may change Kafka's pods when
they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as k8s

TYPE = "stillwater:infra:KafkaNamespace"


@dataclass(frozen=True, kw_only=True)
class KafkaNamespaceArgs:
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)


class KafkaNamespace(pulumi.ComponentResource):
    """One namespace; `name` is known once it exists."""

    name: pulumi.Output[str]

    def __init__(
        self, name: str, args: KafkaNamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        namespace = k8s.core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": args.namespace, "labels": dict(args.labels)},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = namespace.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"name": self.name})
