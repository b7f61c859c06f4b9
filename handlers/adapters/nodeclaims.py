"""What the handlers read of Karpenter: the NodeClaims behind its nodes; nothing changes one.

Auto Mode's are of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.incidents.nodeclaims import NodeClaim, claim_in
from handlers.adapters.eks import EksApi

CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"


class Claims(Protocol):
    """Where NodeClaims are read."""

    def claims(self) -> tuple[NodeClaim, ...]:
        """Return those of every pool, Kafka's or not."""


class NoClaims:
    """A cluster whose nodes Karpenter does not launch."""

    def claims(self) -> tuple[NodeClaim, ...]:
        return ()


NO_CLAIMS: Claims = NoClaims()


@dataclass(frozen=True)
class EksNodeClaims:
    """NodeClaims of an EKS cluster."""

    api: EksApi
    pool_labels: Mapping[str, Sequence[str]]

    def claims(self) -> tuple[NodeClaim, ...]:
        return tuple(claim_in(item, self.pool_labels) for item in self.api.list(CLAIMS_PATH))
