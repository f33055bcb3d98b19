"""`lengthbench needle`: the same evidence at the start, in the middle and at the end of growing inputs."""

from typing import Annotated, Any

from typer import Option

from lengthbench import lengths, positions
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, measuring, named


@guarded
@measuring
def needle(
    asked: Asked,
    positions_: Annotated[
        str, Option("--positions", help="start,middle,end | 10%,50%,90% | 11 for an even grid.")
    ] = "start,middle,end",
    lengths_: Annotated[
        str | None,
        Option("--lengths", help="512..8192 | 512..2048+512 | 256,1k,4k. [default: training length x 0.5..8]"),
    ] = None,
    task: Annotated[
        list[str], Option(help="A task (lengthbench list tasks) or a file.toml. [default: recall, or needle]")
    ] = [],  # noqa: B006
    trials: Annotated[int, Option(help="Trials a cell.")] = 20,
    arms: Annotated[str, Option(help="evidence, absent, oracle and decoy, by commas.")] = "evidence,absent,oracle",
    choice: Annotated[bool, Option(help="Score wrong answers, too.")] = True,
    jsonl: Annotated[str | None, Option(help="Prompts made by others: rows with input, outputs, length.")] = None,
    mode: Annotated[str, Option(help="score: judge a given answer | generate: let the model write.")] = "score",
    template: Annotated[
        str | None, Option(help="none | chat | FILE with {prompt} in it. [default: chat where text is generated]")
    ] = None,
    answer_prefix: Annotated[bool, Option(help="Keep the task's words that lead into the answer.")] = True,
    budget: Annotated[int | None, Option(help="Tokens to generate. [default: twice the answer, at least 32]")] = None,
) -> int:
    """Retrieval of the same evidence from growing inputs, by where it stands, against prompts without it.

    Writes needle.csv, trials.csv, answers.csv, contrasts.csv, a manifest and plots into a folder of its own.
    """
    from lengthbench.probes.needle import Needle

    wanted = () if lengths_ is None else lengths.parse(lengths_)
    names = tuple(dict.fromkeys(arm.strip() for arm in arms.split(",")))
    form = (mode, template, answer_prefix, budget)
    probe = Needle(wanted, positions.parse(positions_), tuple(task), trials, names, choice, jsonl, *form)
    return asked.tell(asked.measure(probe), ("needle", "contrasts"), _show)


def _show(console: Any, tables: dict[str, list[dict]]) -> None:
    from rich.table import Table

    rows = tables["needle"]
    for task in dict.fromkeys(row["task"] for row in rows):
        those = [row for row in rows if row["task"] == task]
        columns = sorted({row["length"] for row in those})
        n = max((row.get("n_trials") or 0 for row in those), default=0)
        what = "contains" if those[0]["mode"] == "generate" else "exact"
        title = f"{task}: {what} rate by length, {n} trials a cell (in brackets: no better than without the evidence)"
        grid = Table(title=title, title_justify="left")
        grid.add_column("model")
        grid.add_column("evidence at")
        for length in columns:
            grid.add_column(str(length), justify="right")
        last = None
        for key in dict.fromkeys((r["model"], r["scheme"], r["scheme_params"]) for r in those):
            own = [r for r in those if (r["model"], r["scheme"], r["scheme_params"]) == key]
            if last is not None:
                grid.add_section()
            last = key
            for number, position in enumerate(dict.fromkeys(r["position"] for r in own)):
                by_length = {r["length"]: r for r in own if r["position"] == position}
                cells = [_cell(by_length.get(length)) for length in columns]
                grid.add_row("" if number else named(own[0]), position, *cells)
        console.print(grid)


def _cell(row: dict | None) -> str:
    if row is None:
        return ""
    if row["status"] != "ok":
        return row["status"]
    rate = f"{row['exact_rate'] if row.get('contains_rate') is None else row['contains_rate']:.2f}"
    return f"({rate})" if row.get("above_absent") is False else rate
