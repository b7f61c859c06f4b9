"""The commands about money: an estimate, the report of a bill, the price book."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.commands.options import AsJson, Commands, complaints, console, examples
from cli.commands.start import Spec
from core.ground.errors import InvalidInput
from core.ground.regions import ZONES, refusal

OUTPUT = Path("out") / "report"
app = typer.Typer()
prices = typer.Typer(cls=Commands, help="The price book.", no_args_is_help=True)
app.add_typer(prices, name="prices")


@app.command(
    epilog=examples(
        "estimate prod --produce-mib-per-s 10 --readers 2",
        "estimate prod --compare eu-west-1 --html estimate.html",
    )
)
def estimate(
    spec: Spec,
    prices: Annotated[
        Path | None, typer.Option(help="A price file shaped like core/prices.json.")
    ] = None,
    produce_mib_per_s: Annotated[
        float, typer.Option(help="What clients produce, all together.")
    ] = 0,
    readers: Annotated[float, typer.Option(help="Consumer groups that read each byte.")] = 1,
    filled: Annotated[float, typer.Option(help="Share of the volumes that holds data.")] = 0.5,
    log_gib_per_day: Annotated[float, typer.Option(help="Control plane logs.")] = 0.5,
    *,
    compare: Annotated[
        str | None, typer.Option(help="Another description, or a region for this one.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also a page, with bars by component.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a cluster costs a month at list price, and what that assumes."""
    from cli import estimate as cli_estimate
    from cli import stack_settings, terminal
    from core.cluster import estimate as counted
    from infra.spec import read

    parsed = read(stack_settings.spec_file(spec))
    given = (produce_mib_per_s, readers, filled, log_gib_per_day)
    usage = counted.Usage(*(Decimal(repr(number)) for number in given))
    book = stack_settings.prices(parsed.region, prices)
    result = counted.monthly(parsed, book, usage)
    asked = list(counted.answers(parsed, book, usage))
    names, both = [spec.stem], [result]
    if compare is not None:
        if compare in ZONES:
            names, region, other = [parsed.region, compare], compare, parsed
        else:
            other = read(stack_settings.spec_file(Path(compare)))
            names, region = [spec.stem, Path(compare).stem], other.region
        both.append(counted.monthly(other, stack_settings.prices(region, prices), usage))
    if html is not None:
        terminal.write_page(html, cli_estimate.page(names, both, asked, usage))
    if as_json:
        typer.echo(cli_estimate.as_json(both, asked, usage))
        return
    if compare is not None:
        console.print(cli_estimate.compared(names, both))
    else:
        console.print(cli_estimate.table(result))
        console.print(cli_estimate.answers_table(asked, result.total))
    for note in cli_estimate.all_notes(both, usage):
        console.print(note)


@app.command(
    epilog=examples(
        "report --bill bill/ --spec clusters/prod.yaml",
        "report --on emr --environment prod --format slack",
    )
)
def report(  # noqa: PLR0917 - the report's inputs
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
        cluster_tag=cluster_tag,
        pool_tag=pool_tag,
    )
    if as_json:
        typer.echo(command.as_json(asked, on, complaints))
        return
    command.make(asked, on, console)


@prices.command(
    "check",
    epilog=examples("prices check", "prices check --region eu-west-1 --tables out/report/tables"),
)
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

    Exit code 0: nothing is old and nothing disagrees; 1: something is or does, or the region has
    no prices.
    """
    from cli import prices as command
    from cli import stack_settings, terminal

    book = stack_settings.prices(region, price_file)
    checked = command.check(book, tables, datetime.now(UTC).date(), older_than_days)
    if as_json:
        terminal.write(command.checked_as_json(checked))
    else:
        command.show_checked(checked, console)
    if checked.doubtful:
        raise typer.Exit(1)


@prices.command(
    "fetch",
    epilog=examples(
        "prices fetch --region eu-west-1", "prices fetch --region eu-west-1 --from index.json"
    ),
)
def prices_fetch(
    region: Annotated[str, typer.Option(help="Whose prices: eu-west-1.")],
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="An offer file of AWS's price list (index.json, also .gz) "
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
    from cli import prices as command
    from cli import terminal

    if (problem := refusal(region)) is not None:
        raise InvalidInput([problem])
    people = complaints if as_json else console
    done = command.fetch(region, files or [], output or command.own_price_file(), people)
    if as_json:
        terminal.write(command.fetched_as_json(done))
        return
    for sentence in command.fetched_sentences(done):
        people.print(sentence)
