"""Arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

Environment = Annotated[str, typer.Argument(help="The stacks' environment: `local` is the twin.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
