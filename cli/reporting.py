"""The commands about money: `stillwater report`, `prices check`.

Only their options are here; what they do is imported when they are called, so that others stay
quick.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.arguments import AsJson
from cli.commands import Commands
from cli.terminal import Terminal
from core.errors import InvalidInput

OUTPUT = Path("out") / "report"

prices = typer.Typer(cls=Commands, help="The price book.", no_args_is_help=True)
console = Terminal()


def report_on(  # noqa: PLR0913, PLR0917 - the report's inputs
    bill: Annotated[
        str | None, typer.Option(help="An export's folder, or one file; CUR or FOCUS.")
    ] = None,
    month: Annotated[
        str | None,
        typer.Option(help="YYYY-MM; without it the last whole one, or that with most of the bill."),
    ] = None,
    cluster_tag: Annotated[
        str | None,
        typer.Option(
            help="The tag that means Kafka: KEY, whose value names the cluster, or KEY=VALUE. "
            "Without it stillwater:cluster."
        ),
    ] = None,
    pool_tag: Annotated[
        str | None,
        typer.Option(help="The key of the tag that names a node's pool, if not stillwater:pool."),
    ] = None,
    as_json: Annotated[  # noqa: FBT002 - typer's way to say a flag
        bool, typer.Option("--json", help="The report as JSON on stdout, and no file.")
    ] = False,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["html", "json", "md", "slack"], typer.Option(help="How it is written.")
    ] = "html",
    spec: Annotated[
        Path | None, typer.Option(help="The cluster's ClusterSpec, for what no bill says.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Prometheus's range-query answers (JSON), or samples as Parquet."),
    ] = None,
    history: Annotated[
        str | None, typer.Option(help="The ledger's archive: closed incidents as JSON lines.")
    ] = None,
    price_file: Annotated[
        Path | None, typer.Option("--prices", help="A price file shaped like core/prices.json.")
    ] = None,
    tables: Annotated[Path, typer.Option(help="Where the tables are kept.")] = OUTPUT / "tables",
    warehouse_folder: Annotated[
        str | None,
        typer.Option(
            "--warehouse",
            help="A folder for the tables as Iceberg, every run a snapshot, instead of Parquet.",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="What they are called in SQL: CATALOG.NAMESPACE.")
    ] = "stillwater.report",
    iceberg_jar: Annotated[
        Path | None, typer.Option(help="Iceberg's jar for Spark; without it Maven fetches it.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the report goes.")] = OUTPUT,
    on: Annotated[
        str, typer.Option(help="Where the bill is read: `local` is here; `emr`, EMR Serverless.")
    ] = "local",
    environment: Annotated[
        str | None, typer.Option(help="Whose stacks: their job on EMR, profile and ClusterSpec.")
    ] = None,
) -> None:
    """Say what Kafka cost, what changed, and the three things to do about it.

    Without a bill the tables of the runs before are read.
    """
    from cli import report as command
    from cli import warehouse

    if as_json and format not in {"html", "json"}:
        problem = f"--json writes JSON to stdout and --format {format} a file; leave one out."
        raise InvalidInput([problem])
    asked = command.ReportOptions(
        bill=bill,
        month=month,
        format=format,
        spec=spec,
        metrics=metrics,
        history=history,
        prices=price_file,
        tables=tables,
        output=output,
        environment=environment,
        warehouse=warehouse.chosen_warehouse(warehouse_folder, namespace, iceberg_jar),
        cluster_tag=cluster_tag,
        pool_tag=pool_tag,
    )
    if as_json:
        typer.echo(command.as_json(asked, on, Terminal(stderr=True)))
        return
    command.make(asked, on, console)


@prices.command("check")
def prices_check(
    price_file: Annotated[
        Path | None,
        typer.Option("--prices", help="A price file; without it your directory's, or the shipped."),
    ] = None,
    region: Annotated[str, typer.Option(help="Whose prices.")] = "us-east-1",
    tables: Annotated[
        Path | None, typer.Option(help="A report's tables: their bill is compared.")
    ] = None,
    older_than_days: Annotated[int, typer.Option(help="From when on a price is old.")] = 180,
    *,
    as_json: AsJson = False,
) -> None:
    """Say how old the price book is, and which rows a bill disagrees with.

    Exit code 0: nothing is old and nothing disagrees; 1: something is or does.
    """
    from cli import answer
    from cli import prices as command
    from cli.project import found

    book = found.prices(region, price_file)
    checked = command.examine(book, tables, datetime.now(UTC).date(), older_than_days)
    if as_json:
        answer.write(command.as_json(checked))
    else:
        command.show(checked, console)
    if checked.doubtful:
        raise typer.Exit(1)
