"""The real programs the twin runs, built once from their public Go modules."""

from local.tools.build import chart_path, tool_path

__all__ = ["chart_path", "tool_path"]
