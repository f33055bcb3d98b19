"""Suites: the same tables as the commands one by one, windows fed once, one journal, and files that say what is wrong."""

import csv
import inspect
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_models
from conftest import read_csv

from lengthbench import suite
from lengthbench.probes.suite import merge
from lengthbench.run.table import VOLATILE, Schema

BOOK = " ".join(f"Night {n} was dark and stormy." for n in range(400))
OTHER = " ".join(f"Day {n} brought rain and wind." for n in range(400))
SHARES = ("fed", "base_length", "schema")
"""Differ: the suite's plan feeds less, and a row that two parts give has the base length of the one that knows it."""

ORACLES = [
    "oracle:context:at=64,below=3,above=2",
    "oracle:copy:distance=40,hit=0.2,miss=3",
    "oracle:constant:nats=1,limit=300",
]
PARTS = """
[[probe]]
kind = "ppl"
lengths = "64..512"
protocol = "nonoverlapping,sliding"
max_tokens = 5120

[[probe]]
kind = "attribute"
lengths = "128..512"
base = 128
method = ["cut", "sliding"]
max_tokens = 5120

[[probe]]
kind = "context"
length = 512
stride = 16
base = 128
groups = 6

[[probe]]
kind = "needle"
lengths = "128,256,512"
positions = "start,end"
task = "recall"
trials = 3
"""
COMMANDS = {
    "ppl": ["--lengths", "64..512", "--protocol", "nonoverlapping,sliding", "--max-tokens", 5120],
    "attribute": ["--lengths", "128..512", "--base", 128, "--method", "cut,sliding", "--max-tokens", 5120],
    "context": ["--length", 512, "--stride", 16, "--base", 128, "--groups", 6],
    "needle": ["--lengths", "128,256,512", "--positions", "start,end", "--task", "recall", "--trials", 3],
}


def written(folder: Path, text: str, **own) -> Path:
    """A suite file, with texts beside it, below the suite's own keys."""
    for name, words in (("a", BOOK), ("b", OTHER)):
        (folder / "texts").mkdir(exist_ok=True)
        (folder / f"texts/{name}.txt").write_text(words)
    path = folder / "own.toml"
    keys = {"data": "texts", "models": ORACLES} | own
    path.write_text("\n".join(f"{k} = {json.dumps(v)}" for k, v in keys.items()) + "\n" + text)
    return path


def cells(path: Path, *without: str) -> dict[tuple, dict[str, str]]:
    """Rows by key; times and `without` left out."""
    from lengthbench.probes import attribution_tables, context_tables, needle_tables, perplexity_tables

    known = {
        s.name: s for t in (attribution_tables, context_tables, needle_tables, perplexity_tables) for s in t.SCHEMAS
    }
    key = known[path.stem].key
    rows = read_csv(path)
    found = {
        tuple(row[k] for k in key): {k: v for k, v in row.items() if k not in (*VOLATILE, *without)} for row in rows
    }
    assert len(found) == len(rows)
    return found


def tables(folder: Path) -> list[str]:
    return sorted(p.stem for p in folder.glob("*.csv"))


def both(run, tmp_path, models, **own):
    """The suite, and each of its commands by itself, into folders of their names."""
    path = written(tmp_path, PARTS, models=models, **own)
    ran = run("run", path, "--out", "suite")
    assert ran.code == 0, ran.err
    for command, options in COMMANDS.items():
        named = [word for model in models for word in ("--model", model)]
        alone = run(command, *named, "--data", "texts", *options, "--out", command)
        assert alone.code == 0, alone.err


def test_equal_to_the_commands_one_by_one(run, tmp_path):
    both(run, tmp_path, ORACLES)
    every = sorted({name for command in COMMANDS for name in tables(tmp_path / command)})
    assert tables(tmp_path / "suite") == every and len(every) == 12
    for name in every:
        suited = cells(tmp_path / f"suite/{name}.csv", *SHARES)
        alone: dict = {}
        for command in COMMANDS:
            path = tmp_path / command / f"{name}.csv"
            for key, row in (cells(path, *SHARES) if path.exists() else {}).items():
                assert suited[key] == row, f"{name}.csv of {command}: {key}"
                alone[key] = row
        assert suited.keys() == alone.keys(), name
    said = [json.loads((tmp_path / c / "manifest.json").read_text())["sentence"] for c in COMMANDS]
    manifest = json.loads((tmp_path / "suite/manifest.json").read_text())
    assert manifest["sentence"] == "\n".join(said) and manifest["command"] == "run"
    plots = {p.name for c in COMMANDS for p in (tmp_path / c / "plots").iterdir()}
    assert {p.name for p in (tmp_path / "suite/plots").iterdir()} >= plots > {"perplexity.png", "ladder.png"}


def test_a_row_of_two_parts_stands_once():
    schema = Schema("ppl", ("model", "length"), ("nll", "base_length", "fed", "seconds", "status", "detail"))
    first = {"model": "m", "length": 64, "nll": 2.5, "base_length": None, "fed": 300, "seconds": 1.5, "status": "ok"}
    second = {**first, "base_length": 128, "detail": "few"}
    short = {"model": "m", "length": 64, "status": "too_short", "detail": "the longest document has 9 tokens"}
    (row,) = merge([schema], [{"ppl": [first]}, {"ppl": [second]}])["ppl"]
    # Each is a share of one pass, so the row of both has taken the whole.
    assert row == {**second, "fed": 600, "seconds": 3.0}
    assert merge([schema], [{"ppl": [short]}, {"ppl": [second]}])["ppl"] == [second]
    assert merge([schema], [{"ppl": [second]}, {"ppl": [short]}, {}])["ppl"] == [second]


def test_shared_windows_are_fed_once(run, tmp_path):
    path = written(tmp_path, PARTS, models=ORACLES[:1])
    fed = {}
    for command, options in COMMANDS.items():
        err = run(command, "--model", ORACLES[0], "--data", "texts", *options, "--dry-run").err
        fed[command] = int(re.search(r"([\d,]+) tokens to feed", err)[1].replace(",", ""))
    err = run("run", path, "--dry-run").err
    whole = int(re.search(r"([\d,]+) tokens to feed", err)[1].replace(",", ""))
    # The nonoverlapping windows of `ppl` from 128 on are those of `attribute`, and the shorter begin the longer.
    assert max(fed.values()) < whole < sum(fed.values()) - fed["ppl"] / 2
    assert not (tmp_path / "results").exists()


def test_equal_on_a_real_network(run, tmp_path, one_thread):
    folder = str(tiny_models.build("llama", tmp_path / "tiny"))
    both(run, tmp_path, [folder])
    for command, name, column in (
        ("ppl", "ppl", "nll"), ("attribute", "attribution", "nats"), ("context", "context", "nll"),
        ("needle", "needle", "answer_nll"),
    ):  # fmt: skip
        suited, alone = cells(tmp_path / f"suite/{name}.csv"), cells(tmp_path / command / f"{name}.csv")
        assert alone.keys() <= suited.keys() and alone
        for key, row in alone.items():
            assert suited[key]["status"] == row["status"], key
            if row["status"] == "ok":
                assert float(suited[key][column]) == pytest.approx(float(row[column]), abs=1e-4), key


def test_a_part_that_cannot_be_measured_leaves_the_others_alone(run, tmp_path):
    path = written(tmp_path, PARTS.replace('lengths = "64..512"', 'lengths = "512"').replace(
        'lengths = "128..512"', 'lengths = "128,512"'), models=ORACLES[2:])  # fmt: skip
    ran = run("run", path, "--out", "r", "--strict", "--json")
    assert ran.code == 3, ran.err
    found = json.loads(ran.out)
    assert {row["status"] for row in found["ppl"] if row["length"] == 512} == {"unsupported"}
    assert "ok" in {row["status"] for row in found["needle"]}
    counts = json.loads((tmp_path / "r/manifest.json").read_text())["rows_per_status"]
    assert counts["unsupported"] > 1 and counts["ok"] > 1
    assert sum(counts.values()) == sum(len(found[t]) for t in ("ppl", "attribution", "context", "needle"))


ARGS = [sys.executable, "-m", "lengthbench", "run", "own.toml", "--out", "r"]
DELAYED = ["oracle:context:at=64,below=3,above=2,delay=0.01", "oracle:constant:nats=1"]


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGKILL])
def test_killed_and_resumed_as_a_whole(run, tmp_path, blow):
    path = written(tmp_path, PARTS, models=DELAYED)
    ran = run("run", path, "--out", "whole")
    assert ran.code == 0, ran.err
    process = subprocess.Popen(ARGS, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    journal, deadline = tmp_path / "r/journal.jsonl", time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") > 12):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(blow)
    process.communicate(timeout=60)
    assert process.returncode == (130 if blow == signal.SIGTERM else -signal.SIGKILL) and journal.exists()
    ran = run("run", path, "--out", "r", "--resume")
    assert ran.code == 0, ran.err
    assert tables(tmp_path / "r") == tables(tmp_path / "whole")
    for name in tables(tmp_path / "r"):
        assert stable(tmp_path / f"r/{name}.csv") == stable(tmp_path / f"whole/{name}.csv"), name
    assert not journal.exists()


def stable(path: Path) -> list[list[str]]:
    rows = list(csv.reader(path.open(encoding="utf-8", newline="")))
    kept = [i for i, name in enumerate(rows[0]) if name not in VOLATILE]
    return [[row[i] for i in kept] for row in rows]


def test_a_changed_suite_never_reuses_rows(run, tmp_path):
    path = written(tmp_path, PARTS, models=ORACLES[1:2])
    assert run("run", path, "--out", "r").code == 0
    path.write_text(path.read_text().replace("trials = 3", "trials = 4"))
    ran = run("run", path, "--out", "r", "--resume")
    assert ran.code == 2 and "probe changed" in ran.err


PPL = '[[probe]]\nkind = "ppl"\nlengths = "128..512"\nmax_tokens = {}\n'
ATTRIBUTE = '[[probe]]\nkind = "attribute"\nlengths = "128..512"\nbase = 128\nmax_tokens = {}\n{}\n'
CONTEXT = '[[probe]]\nkind = "context"\nlength = 512\nstride = 16\n{}\n'
NEEDLE = '[[probe]]\nkind = "needle"\nlengths = {}\ntask = "recall"\n{}\n'


@pytest.mark.parametrize("text, message", [
    (PPL.format(5120) + ATTRIBUTE.format(2560, ""),
     r"probe 1 (ppl) and probe 2 (attribute) feed different windows at length 128, nonoverlapping (for 5,120 and 2,560"),
    (PPL.format(2560).replace("512", "256") + PPL.format(2560),  # as many targets, but other blocks
     "probe 1 (ppl) and probe 2 (ppl) feed different windows at length 128, nonoverlapping (for 2,560 and 2,560"),
    (ATTRIBUTE.format(2560, "") + ATTRIBUTE.format(2560, "top = 3\nkey_gain = 1"),
     "probe 1 (attribute) and probe 2 (attribute) have different values of top, key_gain at length 256"),
    (CONTEXT.format("") + CONTEXT.format("epsilon = 0.1"),
     "probe 1 (context) and probe 2 (context) have different values of epsilon at length 512"),
    (NEEDLE.format(256, "trials = 2") + NEEDLE.format('"256,512"', "trials = 3"),
     "probe 1 (needle) and probe 2 (needle) ask recall (score) at length 256, start, in different trials"),
])  # fmt: skip
def test_two_parts_that_disagree_are_refused_before_anything_runs(run, tmp_path, monkeypatch, text, message):
    from lengthbench.models.oracle import Oracle

    monkeypatch.setattr(Oracle, "score", lambda *_: pytest.fail("it was run"))
    ran = run("run", written(tmp_path, text), "--out", "r")
    assert ran.code == 2 and message in ran.err, ran.err
    assert not (tmp_path / "r").exists()


def test_two_parts_of_a_kind_that_agree(run, tmp_path):
    text = ATTRIBUTE.format(2560, "") + ATTRIBUTE.format(2560, "").replace("base = 128", "base = 256\nend_stride = 32")
    ran = run("run", written(tmp_path, text, models=ORACLES[:1]), "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["attribution"]
    assert {(r["base_length"], r["length"]) for r in rows} == {(128, 256), (128, 512), (256, 512)}


ORACLE = 'models = "oracle:uniform"\n'


@pytest.mark.parametrize("text, message", [
    ("modles = []", "suite own.toml: unknown key 'modles'; the keys are: description, models, schemes, data, column"),
    ("seed = true", "suite own.toml: seed must be a whole number, it is True"),
    ("models = [1]", "suite own.toml: models must be text, or a list of texts; it has 1 in it"),
    ("data = 3", "suite own.toml: data must be text, it is 3"),
    (ORACLE, "suite own.toml: it has no [[probe]]; each has a kind, one of ppl, attribute, context, needle"),
    ("probe = 3", "suite own.toml: probe must be a list, it is 3"),
    ("probe = [3]", "suite own.toml: probe 1: no kind; its kind is one of ppl"),
    ('[[probe]]\nkind = "pp"', "suite own.toml: probe 1: kind = 'pp'; its kind is one of ppl, attribute"),
    ('[[probe]]\nkind = "ppl"\nlenghts = "64"',
     "probe 1 (ppl): unknown key 'lenghts'; the keys are: lengths, protocol, stride, max_tokens"),
    ('[[probe]]\nkind = "ppl"\nlengths = [64]', "probe 1 (ppl): lengths must be text or a whole number, it is [64]"),
    ('[[probe]]\nkind = "ppl"\n[[probe]]\nkind = "ppl"\nstride = "x"',
     "probe 2 (ppl): stride must be a whole number, it is 'x'"),
    ('[[probe]]\nkind = "ppl"\nlengths = "64..100"', "probe 1 (ppl): --lengths 64..100: doubling from 64"),
    ('[[probe]]\nkind = "ppl"\nprotocol = "slide"', "probe 1 (ppl): --protocol 'slide': it is one of nonoverlapping"),
    ('[[probe]]\nkind = "ppl"\nmax_tokens = 0', "probe 1 (ppl): max_tokens = 0: it must be 1 or more"),
    ('[[probe]]\nkind = "needle"\nmax_tokens = 9', "probe 1 (needle): unknown key 'max_tokens'"),
    ('[[probe]]\nkind = "needle"\ntask = "nobody"', "probe 1 (needle): --task nobody: there is none of that name"),
    ('[[probe]]\nkind = "attribute"\nswap = 1', "probe 1 (attribute): swap must be true or false, it is 1"),
    ('[[probe]]\nkind = "context"\nepsilon = "a"', "probe 1 (context): epsilon must be a number, it is 'a'"),
    ("= 3", "not TOML: "),
])  # fmt: skip
def test_a_file_that_is_wrong_says_where(run, tmp_path, text, message):
    (tmp_path / "own.toml").write_text(text)
    ran = run("run", "own.toml")
    assert ran.code == 2 and message in ran.err, ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_part_is_named_in_what_only_the_model_shows(run, tmp_path):
    text = PPL.format(2560) + ATTRIBUTE.format(2560, "stride = 200")
    ran = run("run", written(tmp_path, text))
    assert ran.code == 2 and "probe 2 (attribute): --stride 200: it must be at most the base length, 128" in ran.err


@pytest.mark.parametrize("name, message", [
    ("famly", "suite famly: there is none of that name; there are: checkpoint, family, or a file.toml"),
    ("nowhere.toml", "suite nowhere.toml: cannot be read: No such file"),
    ("checkpoint", "suite checkpoint: it names no model; say --model"),
])  # fmt: skip
def test_a_suite_that_cannot_be_run(run, name, message):
    ran = run("run", name)
    assert ran.code == 2 and message in ran.err


def test_the_command_line_wins(run, tmp_path):
    path = written(tmp_path, PPL.format(5120), models=["oracle:uniform"], batch_tokens=512, bos="never", seed=3,
                   train_length=100, dtype="float32")  # fmt: skip

    def settings(*args) -> dict:
        ran = run("run", path, *args, "--out", "-".join(["r", *map(str, args)]).replace("/", "_"))
        assert ran.code == 0, ran.err
        (manifest,) = tmp_path.glob("-".join(["r", *map(str, args)]).replace("/", "_") + "/manifest.json")
        return json.loads(manifest.read_text())

    plain = settings()
    assert plain["settings"]["models"] == ["oracle:uniform"] and plain["settings"]["seed"] == 3
    assert plain["settings"]["batch_tokens"] == 512 and plain["settings"]["options"]["train_length"] == 100
    other = settings("--model", "oracle:constant:nats=2", "--seed", 0, "--train-length", 64)
    assert other["settings"]["models"] == ["oracle:constant:nats=2"] and other["settings"]["seed"] == 0
    assert other["settings"]["batch_tokens"] == 512 and other["settings"]["options"]["train_length"] == 64
    fewer = settings("--max-tokens", 2560)
    assert fewer["settings"]["max_tokens"] == 2560
    rows = read_csv(tmp_path / "r---max-tokens-2560/ppl.csv")
    assert {row["n_scored"] for row in rows} == {"2560"}
    assert {row["n_scored"] for row in read_csv(tmp_path / "r/ppl.csv")} == {"5120"}


def test_keys_are_the_options_of_the_commands():
    """Whoever adds an option to a command adds its key; what is no key is no property of a suite."""
    from lengthbench.cli import attribute, context, needle, ppl

    not_keys = {"from": "it measures nothing", "affordable": "it is a run of its own, to choose groups"}
    for kind, command in (("ppl", ppl.ppl), ("attribute", attribute.attribute), ("context", context.context),
                          ("needle", needle.needle)):  # fmt: skip
        own = list(inspect.signature(inspect.unwrap(command)).parameters)[1:]
        options = {name.rstrip("_") for name in own} - not_keys.keys()
        assert options == suite.PROBES[kind].keys() - {"max_tokens"}, kind


def test_shipped_suites_can_be_read(run):
    assert list(suite.names()) == ["checkpoint", "family"]
    family, template = suite.read("family"), suite.read("checkpoint")
    assert family.settings["models"] == ("reference:all",)
    for asked in (family, template):
        assert [part.probe.command for part in asked.probe.parts] == ["ppl", "attribute", "context", "needle"]
    ran = run("list", "suites", "--json")
    assert ran.code == 0 and "family.toml" in json.loads(ran.out)["family"]


def test_the_family_suite_agrees_with_itself(run, one_thread):
    ran = run("run", "family", "--model", "reference:rope", "--dry-run")
    assert ran.code == 0 and "tokens to feed" in ran.err, ran.err


def test_the_template_runs_on_a_tiny_checkpoint(run, tmp_path, one_thread):
    """Its lengths are those of a larger one: here they are only planned."""
    folder = tiny_models.build("llama", tmp_path / "tiny")
    ran = run("run", "checkpoint", "--model", folder, "--dry-run")
    assert ran.code == 0 and "tokens to feed" in ran.err, ran.err


def test_speed_beside_other_probes(run, tmp_path):
    Path("s.toml").write_text(
        'models = ["oracle:constant:nats=1", "oracle:constant:nats=2"]\n'
        '[[probe]]\nkind = "ppl"\nlengths = "64,128"\nmax_tokens = 1024\n'
        '[[probe]]\nkind = "speed"\nlengths = "64"\nrounds = 2\nphase = "score"\n'
    )
    ran = run("run", "s.toml", "--out", "r")
    assert ran.code == 0, ran.err
    rows = read_csv(tmp_path / "r" / "speed.csv")
    assert [(r["model"], r["length"], r["phase"], r["status"]) for r in rows] == [
        (f"oracle:constant:nats={n}", "64", "score", "ok") for n in (1, 2)
    ]
    assert len(read_csv(tmp_path / "r" / "ppl.csv")) == 4 and "speed relative to" in ran.out
    assert run("run", "s.toml", "--out", "dry", "--dry-run").code == 0 and not (tmp_path / "dry").exists()


@pytest.mark.parametrize("text, message", [
    ('[[probe]]\nkind = "speed"\n', "alone it is lengthbench speed"),
    ('[[probe]]\nkind = "ppl"\n[[probe]]\nkind = "speed"\nround = 2\n', "unknown key 'round'; the keys are: lengths, phase, rounds"),
    ('[[probe]]\nkind = "ppl"\n[[probe]]\nkind = "speed"\n[[probe]]\nkind = "speed"\n', "once at most"),
])  # fmt: skip
def test_speed_that_cannot_be_asked(run, text, message):
    Path("s.toml").write_text('models = ["oracle:constant:nats=1"]\n' + text)
    ran = run("run", "s.toml")
    assert ran.code == 2 and message in ran.err
