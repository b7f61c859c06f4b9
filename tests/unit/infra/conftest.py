"""See fixtures.py."""

from tests.unit.infra.fixtures import cache, layers

__all__ = ["cache", "layers"]
