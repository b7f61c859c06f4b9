"""Pulumi components: a file or a folder per box a reader would draw on a whiteboard.

stacks/ composes them into layers; what they decide comes from core. Nothing here reads stack
configuration: what a component needs it is given, in a frozen Args object where that is several
things.
"""
