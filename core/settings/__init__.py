"""Defines what functions are told, in one form (codec) that infra renders and handlers read."""
