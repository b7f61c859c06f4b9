"""Stillwater as it is installed: the command, and the program that Pulumi runs.

The project's own packages have names as general as `core` and `cli`. In the wheel they stand below
`app`, out of everybody else's way; in a checkout they stand beside this package.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
# The folder that holds the project's packages.
APP = _HERE / "app" if (_HERE / "app").is_dir() else _HERE.parent
