"""`stillwater prices fetch` as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal import Terminal
from core.cost.pricing import SHIPPED
from core.errors import InvalidInput
from core.regions import refused


def register(prices: typer.Typer) -> None:
    """Add the command to its group."""

    @prices.command("fetch")
    def prices_fetch(
        region: Annotated[str, typer.Option(help="Whose prices: eu-west-1.")],
        files: Annotated[
            list[Path] | None,
            typer.Option(
                "--from",
                help="An offer file of AWS's price list (index.json or index.csv, also .gz) "
                "instead of asking AWS; may be given several times.",
            ),
        ] = None,
        output: Annotated[
            Path | None,
            typer.Option(help="The price file to write; without it the one that is shipped."),
        ] = None,
    ) -> None:
        """Fetch a region's list prices into the price book, dated."""
        from cli.price_fetch import fetch

        if (problem := refused(region)) is not None:
            raise InvalidInput([problem])
        fetch(region, files or [], output or SHIPPED, Terminal())
