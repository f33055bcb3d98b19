"""The gate: a regression fails it, noise does not, and what was not measured never passes."""

import csv
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import read_csv

from lengthbench.check import gate, pair, rules, side
from lengthbench.check.cell import Cell
from lengthbench.check.side import Side
from lengthbench.errors import UserError

FAMILY = Path(__file__).parents[1] / "results/reference/sweep"
MODELS = """
import numpy as np
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.trials import Scores


class Model:
    train_length = 64

    def __init__(self, extra):
        self.tokenizer, self.extra = ByteTokenizer(), extra

    def extra_bytes(self, n_fed, batch):
        return 0

    def score(self, trials):
        losses = [2 + np.sin(t.targets % 17) + 0.5 * (t.scored < 32) + self.extra for t in trials]
        return [Scores(nll.astype(np.float32), np.zeros(len(nll), bool)) for nll in losses]


def plain():
    return Model(0.0)


def worse():
    return Model(0.02)
"""


@pytest.fixture
def measured(run, tmp_path):
    """`measured("plain", out)`: a run of 8 blocks at 64, 128 and 256."""
    (tmp_path / "m.py").write_text(MODELS)

    def call(name: str, out: str, *more: str) -> Path:
        model = name if ":" in name else f"m.py:{name}"
        ran = run("ppl", "--model", model, "--lengths", "64..256", "--max-tokens", "2048", "--out", out, "-q", *more)
        assert ran.code == 0, ran.err
        return Path(out)

    return call


@pytest.fixture
def two(measured):
    """The same model twice, in `old` and `new`."""
    old = measured("plain", "old")
    shutil.copytree(old, "new")
    return old, Path("new")


def edit(file: Path, change, header=None) -> None:
    """Rewrite the rows of a CSV by `change(row)`; a row becomes nothing if it returns None."""
    rows = [r for row in read_csv(file) if (r := change(row)) is not None]
    columns = header or list(read_csv(file)[0])
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def put(length: str, **cells: str):
    """A change of the row of this length."""
    return lambda row: {**row, **cells} if row["length"] == length else row


def uncount(folder: Path) -> None:
    """A manifest that does not say how many rows there are, for tables made by hand."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["rows_per_status"]
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_the_same_model_at_other_batches_passes(run, measured):
    old, new = measured("plain", "old", "--batch-tokens", "256"), measured("plain", "new", "--batch-tokens", "2048")
    ran = run("check", new, "--baseline", old, "-v")
    assert ran.code == 0 and ran.err == ""
    assert ran.out.count("paired, 8 blocks") == 3 and "passed: 3 ok; tolerated ppl:1%" in ran.out
    assert "batch: 256 -> 2048 (3 of 3 cells)" in ran.out


def test_a_fiftieth_of_a_nat_on_every_token_is_caught(run, measured):
    old, new = measured("plain", "old"), measured("worse", "new")
    ran = run("check", new, "--baseline", old)
    assert ran.code == 1 and "failed: 3 worse" in ran.out
    assert (
        "m.py:plain [unknown] nonoverlapping 64: ppl" in ran.err
        and "+2.02 % [+2.02 %, +2.02 %], tolerated 1 %" in ran.err
    )
    report = gate.check(new, old, ["nll:0.015"])
    assert [j.verdict for j in report.judgements] == ["worse"] * 3
    assert all(math.isclose(j.change, 0.02, abs_tol=1e-6) for j in report.judgements)
    assert run("check", new, "-b", old, "--fail", "nll:0.03").code == 0
    assert gate.check(old, new).counts == {"better": 3} and gate.check(old, new).code == 0


def test_a_change_that_one_block_makes_is_not_told_from_noise(two):
    old, new = two
    # One block of eight is worse by 0.16 nat: the mean by 0.02, with a t interval that includes 0.
    file = new / "blocks.csv"
    first = read_csv(file)[0]["block"]

    def change(row):
        more = 0.16 * 256 if row["block"] == first else 0.0
        return {**row, "nll_sum": repr(float(row["nll_sum"]) + more)}

    edit(file, change)
    edit(new / "ppl.csv", lambda row: raised(row, 0.02))
    report = gate.check(new, old)
    assert report.counts == {"ok": 3} and all(0.02 < j.change < 0.0203 and j.low < 0 for j in report.judgements)
    # The same table without its blocks is judged by the point.
    report = gate.check(new / "ppl.csv", old)
    assert report.counts == {"worse": 3} and {j.basis for j in report.judgements} == {"unpaired"}
    assert report.notes[0] == (
        "unpaired: 3 comparisons are of points only, without an interval: new/ppl.csv has no blocks or trials"
    )


def raised(row: dict, nats: float) -> dict:
    nll, n = float(row["nll"]) + nats, int(row["n_scored"])
    return {**row, "nll": repr(nll), "nll_sum": repr(nll * n), "ppl": repr(math.exp(nll))}


@pytest.mark.parametrize(
    ("change", "code", "verdict", "said"),
    [
        (put("128", nll="nan", ppl="nan"), 1, "nonfinite", "nll is nan"),
        (put("128", nll=""), 1, "nonfinite", "nll is empty"),
        (put("128", ppl=""), 1, "nonfinite", "ppl is empty"),
        (put("128", ppl="inf"), 1, "nonfinite", "ppl is inf"),
        (put("128", nll="1e999"), 1, "nonfinite", "nll is 1e999"),
        (put("128", nll="x"), 1, "nonfinite", "nll is x"),
        (put("128", nll_sum="", n_scored=""), 1, "nonfinite", "nll_sum is empty"),
        (put("128", status="nonfinite", nll="", ppl="", detail="3 losses"), 1, "nonfinite", "status nonfinite: 3 losses"),
        (put("128", status="oom", nll="", ppl="", detail="4 GiB"), 1, "missing", "status oom: 4 GiB"),
        (put("128", status="unsupported", nll="", ppl=""), 1, "missing", "status unsupported"),
        (lambda row: None if row["length"] == "128" else row, 1, "missing", "new has no such row"),
        (put("128", tokenizer="bpe:0123"), 2, "not comparable", "tokenizer bytes:edb96515b8fc -> bpe:0123"),
        (put("128", bos_token="7"), 2, "not comparable", "start token none -> 7"),
        (put("128", protocol="sliding"), 2, "not comparable", "protocol nonoverlapping -> sliding"),
        (put("128", stride="32"), 2, "not comparable", "stride 128 -> 32"),
        (put("128", n_bytes="4000"), 2, "not comparable", "n_bytes 2048 -> 4000"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_cell(run, two, change, code, verdict, said):
    old, new = two
    edit(new / "ppl.csv", change)
    uncount(new)
    (new / "blocks.csv").unlink()
    ran = run("check", new, "--baseline", old, "--json")
    found = json.loads(ran.out)
    wrong = [cell for cell in found["cells"] if cell["verdict"] != "ok"]
    assert ran.code == code == found["exit_code"] and found["counts"] == {verdict: 1, "ok": 2}
    assert wrong[0]["length"] == "128" and wrong[0]["reason"] == said
    assert "m.py:plain [unknown] nonoverlapping 128" in ran.err and said in ran.err
    # Worse elsewhere decides over what cannot be compared.
    edit(new / "ppl.csv", lambda row: raised(row, 0.5) if row["length"] == "256" else row)
    assert run("check", new, "--baseline", old).code == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: edit(f / "ppl.csv", put("128", nll="nan")), r"unusable baseline old: .*128: nll is nan; measure"),
        (lambda f: edit(f / "ppl.csv", put("64", ppl="")), r"unusable baseline old: .* 64: ppl is empty"),
        (lambda f: edit(f / "ppl.csv", put("64", status="nonfinite", nll="")), r"unusable baseline old: .*nonfinite"),
        (lambda f: cut(f / "ppl.csv", -40), r"old/ppl.csv: row 4 has \d+ cells, its header \d+; it is cut short"),
        (lambda f: cut(f / "ppl.csv", -500), r"old/ppl.csv: row \d has \d+ cells, its header"),
        (lambda f: drop_last(f / "ppl.csv"), r"old/ppl.csv has 2 rows, its manifest counts 3"),
        (lambda f: (uncount(f), drop_last(f / "ppl.csv")), "unusable baseline old: m.py:plain unknown nonoverlapping 256 256 full has sums, but no row"),
        (lambda f: drop_last(f / "blocks.csv"), r"old/blocks.csv: for m.py:plain .* 256 of ppl.csv it has 7 blocks where it counts 8"),
        (lambda f: edit(f / "blocks.csv", swapped_sum), r"blocks that give nll .* where it says"),
        (lambda f: (f / "ppl.csv").write_text(""), "old/ppl.csv is empty"),
        (lambda f: edit(f / "ppl.csv", lambda row: {**row, "schema": "9"}), "schema version '9', this lengthbench reads 1"),
        (lambda f: edit(f / "ppl.csv", lambda row: row, ["model", "ppl"]), "old/ppl.csv: it has no column scheme, "),
        (lambda f: (f / "ppl.csv").write_bytes(b"\xff\xfe"), "old/ppl.csv: cannot be read"),
        (lambda f: edit(f / "ppl.csv", lambda row: {**row, "length": "128", "stride": "128"}), "rows 2 and 3 have the same key"),
        (lambda f: manifest(f, status="interrupted"), "unusable baseline old: that run is interrupted"),
        (lambda f: (f / "ppl.csv").unlink(), "unusable baseline old: m.py:plain .* has sums, but no row"),
        (lambda f: shutil.rmtree(f), "old is not a run folder"),
    ],
)  # fmt: skip
def test_an_unusable_baseline_is_no_verdict(run, two, damage, said):
    old, new = two
    damage(old)
    ran = run("check", new, "--baseline", old)
    assert ran.code == 2 and ran.err.count("\n") == 1, ran.err
    with pytest.raises(UserError, match=said):
        gate.check(new, old)


def cut(file: Path, end: int) -> None:
    file.write_text(file.read_text()[:end])


def drop_last(file: Path) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def swapped_sum(row: dict) -> dict:
    return {**row, "nll_sum": repr(1.01 * float(row["nll_sum"]))}


def manifest(folder: Path, **fields) -> None:
    found = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(found | fields))


def test_a_damaged_run_could_not_be_checked_and_an_empty_one_failed(run, two):
    old, new = two
    uncount(new)
    edit(new / "ppl.csv", lambda row: None)
    ran = run("check", new, "-b", old)
    assert ran.code == 1 and "3 missing" in ran.out
    cut(new / "ppl.csv", -3)
    ran = run("check", new, "-b", old)
    assert ran.code == 2 and "new/ppl.csv: it has no column schema" in ran.err


def test_other_texts_are_not_comparable(two):
    old, new = two
    manifest(new, data={"name": "novels", "sha256": "0123456789"})
    report = gate.check(new, old)
    assert report.code == 2 and report.judgements[0].reason == "text novels (af247ebc -> 01234567)"
    edit(new / "blocks.csv", lambda row: {**row, "block": str(int(row["block"]) + 1)})
    manifest(new, data=json.loads((old / "manifest.json").read_text())["data"])
    assert gate.check(new, old).judgements[0].reason.startswith("blocks (16 are not the same, such as austen")


@pytest.mark.parametrize("status", ["unsupported", "too_short"])
def test_what_neither_side_can_run_is_ok(two, status):
    for folder in two:
        edit(folder / "ppl.csv", put("256", status=status, nll="", ppl="", nll_sum="", n_scored=""))
    report = gate.check(two[1], two[0])
    assert report.code == 0 and report.judgements[2].reason == f"{status} on both sides"
    edit(two[1] / "ppl.csv", put("256", status="oom"))
    assert gate.check(two[1], two[0]).counts == {"missing": 1, "ok": 2}
    edit(two[1] / "ppl.csv", put("256", status=status))
    edit(two[0] / "ppl.csv", put("256", status="oom"))
    assert gate.check(two[1], two[0]).code == 2  # nothing to compare with


def test_a_perplexity_that_overflows_is_compared_by_its_loss(measured):
    old = measured("oracle:constant:nats=800", "old")
    same, new = measured("oracle:constant:nats=800", "same"), measured("oracle:constant:nats=800.125", "new")
    assert read_csv(old / "ppl.csv")[0]["ppl"] == "inf"
    assert gate.check(same, old).code == 0
    report = gate.check(new, old)
    assert report.counts == {"worse": 3} and math.isclose(report.judgements[0].change, math.expm1(0.125))
    assert json.loads(json.dumps(report.code)) == 1


def test_a_bare_table_is_a_baseline_without_blocks(run, measured):
    old, new = measured("plain", "old"), measured("worse", "new")
    ran = run("check", new, "--baseline", old / "ppl.csv", "-v")
    assert ran.code == 1 and "+2.02 %" in ran.out and ran.out.count(" unpaired ") == 3
    assert run("check", old, "--baseline", old / "ppl.csv").code == 0
    ran = run("check", new, "--baseline", old / "blocks.csv")
    assert ran.code == 2 and "its columns are those of none of ppl.csv" in ran.err
    ran = run("check", new, "--baseline", "nowhere.csv")
    assert ran.code == 2 and "nowhere.csv is not a run folder" in ran.err


def test_models_pair_by_name_by_map_or_by_being_alone(run, tmp_path, measured):
    old, new = measured("plain", "old", "--model", "m.py:worse"), measured("worse", "new")
    ran = run("check", new, "-b", old)
    assert ran.code == 1 and "3 missing, 3 ok" in ran.out
    assert "new does not have this model; it has m.py:worse: --map OLD=NEW pairs two names" in ran.err
    report = gate.check(new, old, renamed=pair.parse_map(["m.py:plain=m.py:worse"]))
    assert report.counts == {"worse": 3, "ok": 3} and "model: m.py:plain -> m.py:worse (3 of 6 cells)" in report.notes
    ran = run("check", new, "-b", old, "--map", "m.py:plian=m.py:worse")
    assert ran.code == 2 and "--map: old has no model m.py:plian; it has: m.py:plain, m.py:worse" in ran.err
    assert pair.parse_map(["oracle:constant:nats=1==b=2"]) == {"oracle:constant:nats=1": "b=2"}
    with pytest.raises(UserError, match="it is OLD=NEW"):
        pair.parse_map(["one"])


def test_rules():
    assert [str(r) for r in rules.parse(())] == ["ppl:1%", "content_use:0.005", "exact:0.05"]
    assert rules.parse(("nll:0.01,ppl:2%", "ppl:3%")) == (rules.Rule("nll", 0.01, False), rules.Rule("ppl", 0.03, True))
    for word, said in (("loss:1", "no metric 'loss'; there are: ppl, nll"), ("ppl", "0 or more, for example ppl:0.01"),
                       ("ppl:-1", "0 or more"), ("ppl:nan", "0 or more"), ("ppl:x%", "0 or more")):  # fmt: skip
        with pytest.raises(UserError, match=said):
            rules.parse((word,))
    # ln 1.01 = 0.00995033: a rise of one per cent.
    assert math.isclose(rules.Rule("ppl", 0.01, True).change(0.00995033, 8.0), 0.01, rel_tol=1e-6)
    assert math.isclose(rules.Rule("ppl", 0.1, False).change(math.log(1.1), 8.0), 0.8)
    assert rules.Rule("nll", 0.01, True).change(0.02, 4.0) == 0.005
    assert rules.Rule("exact", 0.05, False).passed(-0.06) and not rules.Rule("exact", 0.05, False).passed(0.06)


def test_a_rule_that_finds_nothing_is_no_gate(run, two):
    old, new = two
    ran = run("check", new, "-b", old, "--fail", "exact:0.1")
    assert (
        ran.code == 2 and "--fail exact:0.1: old has no such cell, so nothing would be compared; it has ppl," in ran.err
    )


def test_speed_is_judged_if_asked(two):
    old, new = two
    for folder, speed in ((old, "1000"), (new, "700")):
        edit(folder / "ppl.csv", lambda row, speed=speed: {**row, "tokens_per_second": speed})
    assert gate.check(new, old).code == 0
    report = gate.check(new, old, ["tokens_per_second:20%"])
    assert report.counts == {"worse": 3} and math.isclose(report.judgements[0].change, -0.3)
    assert gate.check(new, old, ["tokens_per_second:40%"]).code == 0


def test_attribution_pairs_by_the_sums_of_its_components(run, measured):
    rng = np.random.default_rng(0)
    Path("texts").mkdir()
    for name in ("a.txt", "b.txt"):  # each repeats itself after 100 letters, which no other text does
        Path("texts", name).write_text("".join(rng.choice(list("abcdefghijklmnopqrst"), 100)) * 30)
    for out, hit in (("old", "0.5"), ("new", "3")):
        model = f"oracle:copy:distance=100,hit={hit},miss=3,train=64"
        ran = run("attribute", "-m", model, "--lengths", "64,256", "--max-tokens", "2048", "--method", "cut,sliding",
                  "--data", "texts", "--out", out, "-q")  # fmt: skip
        assert ran.code == 0, ran.err
    old, new = Path("old"), Path("new")
    before = {r["component"]: float(r["nats"]) for r in read_csv(old / "attribution.csv") if r["method"] == "cut"}
    assert before["content_use"] > 1 and before["early_token"] == 0
    loaded = [c for c in side.load(old).cells if c.table == "attribution"]
    assert len(loaded) == 9
    for cell in loaded:
        sums = cell.sums["nats"].values()
        assert len(sums) == 8
        assert math.isclose(sum(a for a, _ in sums) / sum(b for _, b in sums), float(cell.row["nats"]), abs_tol=1e-12)
    report = gate.check(new, old, ["content_use:0.005", "beyond_base:0.005"])
    cut = {j.metric: j for j in report.of("worse") if j.cell.row["method"] == "cut"}
    assert set(cut) == {"content_use", "beyond_base"} and report.code == 1
    assert math.isclose(cut["content_use"].change, -before["content_use"]) and cut["content_use"].high < -0.005
    assert str(
        cut["content_use"].cell
    ) == "oracle:copy:distance=100,hit=0.5,miss=3,train=64 [oracle] cut 256 content_use".replace(" [oracle]", "")
    # Swapped with other texts, the blocks are others.
    edit(new / "blocks.csv", lambda row: {**row, "detail": "elsewhere@1"} if row["condition"] == "swap" else row)
    stated = {j.cell.row["component"]: j for j in gate.check(new, old).judgements if j.cell.table == "attribution"}
    assert stated["content_use"].verdict == stated["length_effect"].verdict == "not comparable"
    assert stated["window_end"].verdict == "ok"


def test_a_ladder_is_compared_rung_by_rung(run, measured):
    measured("plain", "unused")
    for name in ("plain", "worse"):
        assert (
            run(
                "context", "-m", f"m.py:{name}", "--length", "256", "--max-tokens", "2048", "--out", f"c-{name}", "-q"
            ).code
            == 0
        )
    report = gate.check(Path("c-worse"), Path("c-plain"))
    assert set(report.counts) == {"worse"} and all(j.cell.table == "context" for j in report.judgements)
    assert all(math.isclose(j.change, math.expm1(0.02), abs_tol=1e-6) for j in report.judgements)
    assert gate.check(Path("c-plain"), Path("c-plain")).code == 0


NEEDLE = ("model", "scheme", "scheme_params", "task", "task_version", "mode", "length", "position", "n_trials",
          "exact_rate", "answer_nll", "evidence_gain", "tokenizer", "bos_token", "data", "status", "detail", "schema")  # fmt: skip
TRIALS = (*NEEDLE[:8], "arm", "trial", "prompt_sha256", "answer_nll", "exact", "status", "schema")


def retrieval(folder: str, hits: int, n: int = 20, version: str = "1", prompts: str = "p") -> Path:
    """A run of one cell with `hits` of `n` answers right; an answer costs 1 nat if right and 4 if not, 5 without evidence."""
    key = dict(zip(NEEDLE[:8], ("m", "alibi", "", "recall", version, "score", "512", "middle"), strict=True))
    exact = [i < hits for i in range(n)]
    nll = [1.0 if e else 4.0 for e in exact]
    row = {**key, "n_trials": n, "exact_rate": hits / n, "answer_nll": sum(nll) / n, "evidence_gain": 5 - sum(nll) / n}
    path = Path(folder)
    path.mkdir()
    (path / "manifest.json").write_text(json.dumps({"settings": {}, "status": "complete"}))
    for name, columns, rows in (
        ("needle", NEEDLE, [{**row, "tokenizer": "b", "data": "novels", "status": "ok", "schema": 1}]),
        ("trials", TRIALS, [
            {**key, "arm": arm, "trial": i, "prompt_sha256": f"{prompts}{arm}{i}", "status": "ok", "schema": 1,
             "answer_nll": nll[i] if arm == "evidence" else 5.0,
             "exact": str(exact[i] if arm == "evidence" else False).lower()}
            for arm in ("evidence", "absent") for i in range(n)
        ]),
    ):  # fmt: skip
        with (path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return path


def test_retrieval_pairs_by_trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = retrieval("old", 20)
    report = gate.check(retrieval("half", 10), old, ["exact:0.05", "answer_nll:0.5", "evidence_gain:0.5"])
    assert [(j.metric, j.change, j.basis) for j in report.judgements] == [
        ("exact", -0.5, "paired, 20 trials"), ("answer_nll", 1.5, "paired, 20 trials"),
        ("evidence_gain", -1.5, "paired, 20 trials"),
    ]  # fmt: skip
    assert report.counts == {"worse": 3} and -0.75 <= report.judgements[0].low <= report.judgements[0].high <= -0.25
    # Two answers of twenty: -0.1, and as an interval it reaches 0.
    report = gate.check(retrieval("two", 18), old)
    assert report.code == 0 and report.judgements[0].change == -0.1 and report.judgements[0].high == 0
    assert gate.check(retrieval("other", 20, version="2"), old).judgements[0].reason == "task version 1 -> 2"
    assert (
        gate.check(retrieval("drawn", 20, prompts="q"), old)
        .judgements[0]
        .reason.startswith("trials (40 are not the same")
    )
    assert gate.check(retrieval("few", 10, n=10), old).judgements[0].reason == "n_trials 20 -> 10"
    drop_last(old / "trials.csv")
    edit(old / "trials.csv", lambda row: None if row["arm"] == "evidence" and row["trial"] == "3" else row)
    with pytest.raises(
        UserError,
        match=r"old/trials.csv: for m \[alibi\] score recall 512 middle of needle.csv it has 19 trials where it counts 20",
    ):
        gate.check(old, old)


def test_outputs_for_ci(run, measured, monkeypatch):
    old, new = measured("plain", "old"), measured("worse", "new")
    edit(new / "ppl.csv", put("128", status="oom", nll="", detail="a | b\n<c> 100%"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ran = run("check", new, "--baseline", old, "--junit", "j.xml", "--markdown", "s.md", "--json")
    assert ran.code == 1 and json.loads(ran.out)["verdict"] == "failed"
    suite = ElementTree.parse("j.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("ppl", "3", "3", "0")
    failure = suite[2].find("failure")
    assert failure is not None and failure.get("type") == "missing" and "<c> 100%" in failure.get("message", "")
    text = Path("s.md").read_text()
    assert text.startswith("## lengthbench check: failed\n\nnew against old: 2 worse, 1 missing.")
    assert "status oom: a \\| b &lt;c&gt; 100% |" in text and text.count("| worse |") == 2
    lines = [line for line in ran.err.splitlines() if line.startswith("::error")]
    assert len(lines) == 3
    assert lines[2] == (
        "::error title=missing%3A m.py%3Aplain [unknown] nonoverlapping 128::status oom: a | b%0A<c> 100%25"
    )
    ran = run("check", new, "--baseline", "nowhere")
    assert (
        ran.code == 2
        and "::error title=lengthbench check::nowhere is not a run folder: it has no manifest.json\n" in ran.err
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert "::error" not in run("check", new, "--baseline", old).err
    ran = run("check", new, "--baseline", old, "--junit", "no/such/j.xml")
    assert ran.code == 2 and "--junit no/such/j.xml: cannot write there" in ran.err


def test_names_that_no_xml_holds(two, run):
    for folder in two:
        for name in ("ppl", "blocks"):
            edit(folder / f"{name}.csv", lambda row: {**row, "model": "a\x01<b>\"'"})
    assert run("check", two[1], "-b", two[0], "--junit", "j.xml").code == 0
    assert "a�<b>\"'" in ElementTree.parse("j.xml").getroot()[0][0].get("name", "")


def test_many_annotations_are_cut_at_what_is_shown(measured):
    from lengthbench.check import annotations

    report = gate.check(measured("worse", "new"), measured("plain", "old"))
    many = replace(report, judgements=report.judgements * 4)
    lines = annotations.lines(many)
    assert len(lines) == 10 and lines[-1] == "::error title=lengthbench check::3 more cells; see the table"


def simulated(cells, rng, draw, nats: float, spread: float = 0.0, noise: float = 1e-5) -> Side:
    """The cells on blocks drawn with replacement, each token's loss moved by `nats` and noise, each block's by `spread` of it."""
    out = []
    for cell in cells:
        units = sorted(cell.sums["nll"])
        sums = {}
        for i, j in enumerate(draw):
            total, n = cell.sums["nll"][units[j]]
            moved = nats * (1 + spread * rng.standard_normal()) + noise * rng.uniform(-1, 1)
            sums[str(i), units[j][1]] = (total + moved * n, n)
        total, n = (sum(column) for column in zip(*sums.values(), strict=True))
        row = {
            **cell.row,
            "nll_sum": repr(total),
            "n_scored": repr(n),
            "nll": repr(total / n),
            "ppl": repr(math.exp(total / n)),
        }
        out.append(Cell("ppl", row, {"nll": sums}))
    return Side(Path("simulated"), tuple(out))


def alarms(trials: int, nats: float, spread: float = 0.0) -> tuple[float, float]:
    """Shares of cells and of whole gates that are worse."""
    cells = [c for c in side.load(FAMILY).cells if c.status == "ok"]
    rng = np.random.default_rng(7)
    worse = gates = 0
    for _ in range(trials):
        draw = rng.integers(0, 6, 6)
        old, new = simulated(cells, rng, draw, 0.0), simulated(cells, rng, draw, nats, spread)
        report = gate.compare(new, old, rules.DEFAULTS, False, {})
        worse += len(report.of("worse"))
        gates += report.code == 1
    return worse / trials / len(cells), gates / trials


@pytest.mark.slow
def test_false_alarms_and_what_is_caught():
    assert alarms(200, 0.0) == (0.0, 0.0)
    # The tolerated change itself, uneven over the blocks by half of it: at most 2.5 % by the interval's construction.
    at_the_edge, _ = alarms(30, math.log(1.01), 0.5)
    assert at_the_edge <= 0.05
    # An even regression is caught as soon as it is beyond; one as uneven as real models differ (a fifth), from 0.0165 on.
    assert alarms(30, 0.0101)[0] == 1.0
    assert alarms(60, 0.0165, 0.2)[0] >= 0.9
