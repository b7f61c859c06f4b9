"""The real programs the twin runs, built once from their public Go modules (one folder each)."""

from local.tools.build import chart_path, tool_path

__all__ = ["chart_path", "tool_path"]
