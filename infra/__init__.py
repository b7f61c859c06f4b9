"""Pulumi components: one file per box a reader would draw on a whiteboard.

stacks/ composes them into layers; what they decide comes from core. Nothing here reads stack
configuration: every component takes a frozen Args object.
"""
