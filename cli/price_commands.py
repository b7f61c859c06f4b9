"""`stillwater prices fetch` as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AsJson
from cli.terminal import Terminal
from core.errors import InvalidInput
from core.regions import refusal


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
            typer.Option(
                help="The price file to write; without it prices.json of the directory that "
                "`stillwater init` wrote."
            ),
        ] = None,
        *,
        as_json: AsJson = False,
    ) -> None:
        """Fetch a region's list prices into a price file, dated."""
        from cli import answer
        from cli.price_fetch import as_json as rendered
        from cli.price_fetch import fetch, sentences, target

        if (problem := refusal(region)) is not None:
            raise InvalidInput([problem])
        people = Terminal(stderr=as_json)
        done = fetch(region, files or [], output or target(), people)
        if as_json:
            answer.write(rendered(done))
            return
        for sentence in sentences(done):
            people.print(sentence)
