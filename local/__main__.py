"""Runs the twin's commands: `python -m local setup|demo|up|preview|destroy`."""

from __future__ import annotations

from cli.__main__ import main

if __name__ == "__main__":
    main(module="local.commands.app")
