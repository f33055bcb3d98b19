"""Options that several commands share: one name, one meaning, one help line each."""

from typing import Annotated

from typer import Option

Models = Annotated[
    list[str],
    Option(
        "--model",
        "-m",
        help="reference:all | reference:NAME | folder | hub id | file.gguf | smollm2 | file.py:function",
    ),
]
Schemes = Annotated[
    list[str],
    Option("--scheme", help="Position scheme put in place of the model's own: NAME[:key=value,...]"),
]
Data = Annotated[
    str, Option(help="novels | text file or folder | json, jsonl, csv, parquet | hub:NAME[/CONFIG][:SPLIT]")
]
Column = Annotated[str | None, Option(help="Column of a table that holds the text. [default: text]")]
Split = Annotated[str | None, Option(help="Split of a data set.")]
Join = Annotated[str, Option(help="Join the rows of a table into one text: auto | always | never")]
MaxTokens = Annotated[
    int | None,
    Option(
        "--max-tokens",
        help="Targets to score. [default: 49152 (attribute: 32768), or five blocks where those are more]",
    ),
]
Bos = Annotated[str, Option(help="Start token in front of every window: auto | always | never")]
Dtype = Annotated[str, Option(help="auto | float32 | bfloat16 | float16")]
Device = Annotated[str, Option(help="auto | cpu | cuda")]
BatchTokens = Annotated[int, Option("--batch-tokens", help="Most tokens fed in one forward pass of short windows.")]
Seed = Annotated[int, Option(help="Seed of everything random.")]
Out = Annotated[str | None, Option(help="Folder for the run. [default: results/<time>-<command>-<model>]")]
DryRun = Annotated[bool, Option("--dry-run", help="Plan and cost only.")]
Resume = Annotated[bool, Option("--resume", help="Go on with an interrupted run; only what is missing is computed.")]
Json = Annotated[bool, Option("--json", help="One JSON document on stdout.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, no notes.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Say also how each model is run and what its plan saves.")]
Executor = Annotated[str, Option(help="Where passes run: local.")]
Strict = Annotated[bool, Option("--strict", help="Exit 3 if some cell is not ok.")]
TrainLength = Annotated[int | None, Option("--train-length", help="Overrides the training length the model states.")]
AllowPickle = Annotated[
    bool, Option("--allow-pickle", help="Load weights that are not safetensors: they can run code.")
]
AllowRemoteCode = Annotated[bool, Option("--allow-remote-code", help="Run code that comes with the checkpoint.")]
AllowMissing = Annotated[bool, Option("--allow-missing", help="Load although tensors are missing; rows are marked.")]
