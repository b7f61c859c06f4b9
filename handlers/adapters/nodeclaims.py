"""Reads Karpenter's NodeClaims, the machines behind its nodes; a rotation deletes one.

Auto Mode's are of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from core.errors import Conflict
from core.incidents.nodeclaims import NodeClaim, claim_in
from handlers.adapters.eks import EksApi
from handlers.adapters.shapes import known_shape

CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"


class NodeClaims(Protocol):
    """Where NodeClaims are read."""

    def claims(self) -> tuple[NodeClaim, ...]:
        """Return those of every pool, Kafka's or not."""


class NoClaims:
    """A cluster whose nodes Karpenter does not launch."""

    def claims(self) -> tuple[NodeClaim, ...]:
        return ()


NO_CLAIMS: NodeClaims = NoClaims()


@dataclass(frozen=True)
class EksNodeClaims:
    """NodeClaims of an EKS cluster."""

    api: EksApi
    pool_labels: Mapping[str, Sequence[str]]

    @known_shape("The Kubernetes API")
    def claims(self) -> tuple[NodeClaim, ...]:
        return tuple(claim_in(item, self.pool_labels) for item in self.api.list(CLAIMS_PATH))


class ClaimEnds(Protocol):
    """Where a NodeClaim is deleted."""

    def end(self, name: str, uid: str) -> None:
        """Delete this very claim; one that is gone, or another of its name, is left alone."""


class NoEnds:
    """Where none may be."""

    def end(self, name: str, uid: str) -> None:
        raise Conflict(f"NodeClaim {name} ({uid}) is not ours to delete.")


NO_ENDS: ClaimEnds = NoEnds()


@dataclass(frozen=True)
class EksClaimEnds:
    """NodeClaims of an EKS cluster."""

    api: EksApi

    def end(self, name: str, uid: str) -> None:
        self.api.delete(f"{CLAIMS_PATH}/{quote(name)}", uid)
