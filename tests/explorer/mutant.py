"""One break of core/ or handlers/; tests.explorer.mutants has them all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break: in the package's one module that holds `snippet`, it reads `instead`."""

    name: str
    snippet: str
    instead: str
    package: str = "core"
