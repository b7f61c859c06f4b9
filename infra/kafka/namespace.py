"""The namespace everything of Kafka lives in.

It stands apart from Kafka, because what must be there before Kafka's first pod lives in it too: the
operator's rights, the load balancer's bindings. Its labels say who may change Kafka's pods when
they are made, and which pods are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s

TYPE = "stillwater:infra:KafkaNamespace"
# Our operator makes its pods by the restricted standard (infra.charts.strimzi). Enforced, that
# standard would refuse a broker that stops before an upgraded operator has described it again, and
# one whose operator is the user's own.
POD_SECURITY = {
    f"pod-security.kubernetes.io/{mode}": standard
    for mode, standard in (("enforce", "baseline"), ("audit", "restricted"), ("warn", "restricted"))
}


class KafkaNamespace(pulumi.ComponentResource):
    """One namespace; `name` is known once it exists."""

    name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        made = k8s.core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": namespace, "labels": {**POD_SECURITY, **labels}},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = made.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"name": self.name})
