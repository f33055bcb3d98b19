"""Commands run in this process through `run`: exit code, stdout and stderr as a shell would see them."""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """`run("ppl", "--model", ...)`; relative paths and results/ live in the test's own folder."""
    from lengthbench.cli.app import app

    monkeypatch.chdir(tmp_path)

    def call(*args) -> Ran:
        try:
            app([str(a) for a in args], standalone_mode=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
