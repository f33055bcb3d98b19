"""Commands run in this process through `run`: exit code, stdout and stderr as a shell would see them."""

import csv
import os
import socket
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


@pytest.fixture
def one_thread(monkeypatch):
    """For models so small that several threads mostly wait for each other, here and in the processes that are started."""
    import torch

    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_network(monkeypatch):
    """Whoever asks the network fails the test."""

    def connect(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
