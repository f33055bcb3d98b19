"""The command line: one file a command; each parses, calls one function and prints.

torch and its kind are imported inside the commands, so that --help and a usage error answer at once.
"""

import typer

from lengthbench.cli import accept, attribute, check, context, list_, needle, ppl, report, run, show, speed, train
from lengthbench.cli.guard import Shell

app = typer.Typer(
    name="lengthbench",
    cls=Shell,
    help="When a language model gets longer input than it was trained on, what really happens?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("ppl")(ppl.ppl)
app.command("attribute")(attribute.attribute)
app.command("context")(context.context)
app.command("needle")(needle.needle)
app.command("speed")(speed.speed)
app.command("run")(run.run)
app.command("train")(train.train)
app.command("check")(check.check)
app.command("accept")(accept.accept)
app.command("report")(report.report)
app.command("list")(list_.list_)
app.command("show")(show.show)


@app.callback(invoke_without_command=True)
def main(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
    if version:
        from importlib import metadata

        typer.echo(f"lengthbench {metadata.version('lengthbench')}")
        raise typer.Exit
