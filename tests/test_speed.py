"""Speed: ratios of models whose delay is known, statuses in place of crashes, and one step of an untrained scheme."""

import json
import math
from pathlib import Path

import pytest
from conftest import read_csv

from lengthbench import timing
from lengthbench.request import Request
from lengthbench.run.folder import RunFolder, read_manifest
from lengthbench.run.journal import Journal
from lengthbench.speed import Speed, compare

SLOW, QUICK = "oracle:constant:nats=1,delay=0.02", "oracle:uniform:delay=0.01"
ARGS = ["speed", "--model", SLOW, "--model", QUICK, "--lengths", "128,256", "--batch-tokens", 256, "--rounds", 3]


def test_ratio_of_two_delays(run):
    ran = run(*ARGS, "--out", "r")
    assert ran.code == 0, ran.err
    rows = read_csv_by("r/speed.csv")
    assert set(rows) == {(model, length) for model in (SLOW, QUICK) for length in ("128", "256")}
    for length, windows in (("128", 2), ("256", 1)):
        slow, quick = rows[SLOW, length], rows[QUICK, length]
        # 256 tokens in `windows` windows of 20 ms and of 10 ms
        assert float(slow["tokens_per_second"]) == pytest.approx(256 / (0.02 * windows), rel=0.15)
        assert float(quick["ratio"]) == pytest.approx(2, rel=0.15) and float(slow["ratio"]) == 1
        assert float(quick["ratio_low"]) <= float(quick["ratio"]) <= float(quick["ratio_high"])
        assert quick["relative_to"] == SLOW and quick["n_tokens"] == str(3 * 256) and quick["phase"] == "score"
        assert int(quick["peak_memory_bytes"]) > 2**20 and quick["route"] == "exact"
    manifest = json.loads(Path("r/manifest.json").read_text())
    assert manifest["command"] == "speed" and manifest["rows_per_status"] == {"ok": 4}
    assert f"tokens a second relative to {SLOW}: {QUICK} x " in manifest["sentence"]


def test_relative_to_another(run):
    ran = run(*ARGS, "--relative-to", QUICK, "--json")
    assert ran.code == 0, ran.err
    rows = {(row["model"], row["length"]): row for row in json.loads(ran.out)["speed"]}
    assert rows[SLOW, 256]["ratio"] == pytest.approx(0.5, rel=0.15) and rows[QUICK, 256]["ratio"] == 1


def read_csv_by(path) -> dict:
    return {(row["model"], row["length"]): row for row in read_csv(Path(path))}


def test_models_take_turns(monkeypatch):
    """A B A B, whatever happens meanwhile."""
    turns = []

    def note(self, cells, batch_tokens):
        turns.append((self.name, tuple(cells)))
        for _ in cells:
            yield timing.Timing("ok", "", 100, 2.0 if self.name == SLOW else seconds.pop(0), 1), {"model": self.name}

    seconds = [1.0, 4.0, 1.6]
    monkeypatch.setattr(timing.Whole, "turn", note)
    found = compare(Request(models=(SLOW, QUICK), keep=False), Speed((128,), rounds=3))
    assert [name for name, _ in turns] == [SLOW, QUICK] * 3
    row = found.tables["speed"][1]
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == (1.25, 0.5, 2.0)
    assert row["tokens_per_second"] == 62.5  # the median of 100, 25 and 62.5


def test_what_cannot_be_timed_has_a_status(run):
    ran = run("speed", "--model", "oracle:uniform", "--model", "oracle:uniform:limit=200", "--model",
              "oracle:constant:nats=1,gib=1000", "--model", "oracle:constant:nats=nan", "--lengths", "128,256",
              "--rounds", 2, "--out", "r", "--strict")  # fmt: skip
    assert ran.code == 3, ran.err
    rows = read_csv_by("r/speed.csv")
    assert rows["oracle:uniform:limit=200", "128"]["status"] == "ok"
    row = rows["oracle:uniform:limit=200", "256"]
    assert row["status"] == "unsupported" and "end at 200" in row["detail"] and row["tokens_per_second"] == ""
    row = rows["oracle:constant:nats=1,gib=1000", "256"]
    assert row["status"] == "oom" and "GiB are free" in row["detail"] and row["ratio"] == ""
    row = rows["oracle:constant:nats=nan", "256"]
    assert row["status"] == "nonfinite" and row["seconds"] == ""


def test_nothing_to_compare_with(run):
    ran = run("speed", "--model", "oracle:uniform:limit=200", "--model", "oracle:uniform", "--lengths", "128,256",
              "--rounds", 1, "--out", "r")  # fmt: skip
    assert ran.code == 0, ran.err
    rows = read_csv_by("r/speed.csv")
    row = rows["oracle:uniform", "256"]
    assert row["status"] == "ok" and row["ratio"] == "" and float(row["tokens_per_second"]) > 0
    assert row["detail"] == "oracle:uniform:limit=200 has no number here to compare with"
    row = rows["oracle:uniform", "128"]
    assert float(row["ratio"]) > 0 and row["ratio_low"] == "" and "one round" in row["detail"]


def test_generated_tokens_a_second(run):
    ran = run("speed", "--model", "oracle:uniform", "--model", "reference:rope", "--phase", "generate", "--lengths",
              64, "--rounds", 1, "--out", "r")  # fmt: skip
    assert ran.code == 0, ran.err
    rows = read_csv_by("r/speed.csv")
    assert rows["oracle:uniform", "64"]["status"] == "unsupported"
    assert rows["oracle:uniform", "64"]["detail"] == "it cannot generate text"
    row = rows["reference:rope", "64"]
    assert row["n_tokens"] == str(timing.BUDGET) and float(row["tokens_per_second"]) > 0


def test_schemes_without_a_model(run, one_thread):
    ran = run("speed", "--scheme", "learned", "--scheme", "rope:theta=500", "--lengths", 64, "--batch-tokens", 128,
              "--rounds", 2, "--out", "r")  # fmt: skip
    assert ran.code == 0, ran.err
    rows = {(row["model"], row["phase"]): row for row in read_csv(Path("r/speed.csv"))}
    assert set(rows) == {(m, p) for m in ("learned", "rope:theta=500") for p in ("score", "train")}
    for row in rows.values():
        assert row["status"] == "ok" and row["train_length"] == "64" and row["n_tokens"] == str(2 * 128)
    assert '"theta": 500' in rows["rope:theta=500", "train"]["scheme_params"]
    # An update goes forwards and backwards.
    assert float(rows["learned", "train"]["tokens_per_second"]) < float(rows["learned", "score"]["tokens_per_second"])


def test_an_update_that_cannot_fit_is_refused_before_it_starts(monkeypatch):
    from lengthbench.training import untrained

    monkeypatch.setattr(untrained, "available", lambda: 100 * 2**20)
    monkeypatch.setattr(untrained, "train", lambda *_: pytest.fail("it was started"))
    found = compare(Request(models=(), schemes=("t5",), keep=False), Speed((4096,), ("train",), rounds=1))
    (row,) = found.tables["speed"]
    assert row["status"] == "oom" and "0.1 GiB are free" in row["detail"]


def test_two_schemes_in_one_model_have_names_of_their_own(run):
    args = ["speed", "--model", "reference:rope", "--scheme", "rope", "--scheme", "linear:factor=2", "--dry-run"]
    ran = run(*args, "--relative-to", "nobody")
    assert ran.code == 2
    assert "--relative-to nobody: it is none of those that are timed: reference:rope [rope" in ran.err
    assert "reference:rope [linear" in ran.err
    assert run(*args, "--lengths", 64).code == 0


@pytest.mark.parametrize("args, message", [
    (["--rounds", 0], "--rounds 0: it must be 1 or more"),
    (["--phase", "score,walk"], "--phase 'walk': it is one of score, generate, train"),
    (["--phase", "train"], "--phase train: a model is trained already"),
    (["--lengths", "1"], "is too short"),
    (["--relative-to", "x"], "--relative-to x: it is none of those that are timed: oracle:uniform"),
    (["--scheme", "alibi"], "has no position scheme"),
])  # fmt: skip
def test_bad_options_are_refused(run, tmp_path, args, message):
    ran = run("speed", "--model", "oracle:uniform", *args)
    assert ran.code == 2 and message in ran.err, ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scheme, message", [
    ("nobody", "no scheme called 'nobody'"), ("rope:what=1", "no parameter 'what'")
])  # fmt: skip
def test_a_scheme_that_does_not_exist(run, scheme, message):
    ran = run("speed", "--scheme", scheme, "--lengths", 64)
    assert ran.code == 2 and message in ran.err


def test_finished_rounds_are_not_timed_again(run, tmp_path):
    assert run(*ARGS, "--out", "r").code == 0
    rounds = [{(SLOW, 128): 2.0, (QUICK, 128): 1.0, (SLOW, 256): 2.0, (QUICK, 256): 1.0}] * 2
    folder = RunFolder(tmp_path / "r", read_manifest(tmp_path / "r"))
    folder.update(status="interrupted")
    journal = Journal(tmp_path / "r")
    journal.append({"model": 0, "fingerprint": {"model": f"{SLOW} + {QUICK}"}})
    columns = {"model": SLOW, "scheme": "oracle", "scheme_params": "", "train_length": 256, "dtype": "float32",
               "device": "cpu", "route": "exact", "weights": SLOW}  # fmt: skip
    for number, found in enumerate(rounds):
        results = [
            [model, length, "score", {"status": "ok", "n_tokens": 1000, "seconds": seconds},
             columns | {"model": model, "weights": model}]
            for (model, length), seconds in found.items()
        ]  # fmt: skip
        journal.append({"model": 0, "batch": number, "results": results})
    ran = run(*ARGS, "--out", "r", "--resume")
    assert ran.code == 0, ran.err
    row = read_csv_by("r/speed.csv")[QUICK, "256"]
    assert row["n_tokens"] == str(2 * 1000 + 256) and math.isclose(float(row["ratio"]), 2, rel_tol=0.01)
    assert not (tmp_path / "r/journal.jsonl").exists()


def test_a_model_that_changed_meanwhile_is_not_mixed_in(run, tmp_path):
    assert run(*ARGS, "--out", "r").code == 0
    RunFolder(tmp_path / "r", read_manifest(tmp_path / "r")).update(status="interrupted")
    journal = Journal(tmp_path / "r")
    journal.append({"model": 0, "fingerprint": {"model": f"{SLOW} + {QUICK}"}})
    results = [[model, length, "score", {"status": "ok"}, {"model": model, "weights": "other"}]
               for model in (SLOW, QUICK) for length in (128, 256)]  # fmt: skip
    journal.append({"model": 0, "batch": 0, "results": results})
    ran = run(*ARGS, "--out", "r", "--resume")
    assert ran.code == 2 and f"weights of {SLOW} changed since" in ran.err
