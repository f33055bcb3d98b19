"""`lengthbench ppl` end to end on exact fakes: every value is known beforehand."""

import json
import math
from pathlib import Path

import pytest
from conftest import read_csv

BOOK = " ".join(f"Night {n} was dark and stormy." for n in range(450))
CONTEXT = "oracle:context:at=64,below=3,above=2"


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    return path


def test_early_tokens_alone_lower_perplexity(run):
    """3 nats below 64 tokens of context, else 2: (63 x 3 + (L - 63) x 2) / L."""
    ran = run("ppl", "--model", CONTEXT, "--lengths", "128,512,1024,2048", "--out", "r")
    assert ran.code == 0, ran.err
    rows = {int(r["length"]): r for r in read_csv(Path("r/ppl.csv"))}
    assert {n: float(r["nll"]) for n, r in rows.items()} == {
        128: 2.4921875,
        512: 2.123046875,
        1024: 2.0615234375,
        2048: 2.03076171875,
    }
    assert {r["n_scored"] for r in rows.values()} == {"49152"} and {r["status"] for r in rows.values()} == {"ok"}
    assert float(rows[128]["ppl"]) == pytest.approx(math.exp(2.4921875), rel=1e-15)
    assert "perplexity falls for" in ran.out and "no use of far context" in ran.out


def test_positions_say_where_the_losses_are(run):
    run("ppl", "--model", CONTEXT, "--lengths", "128", "--out", "r")
    rows = {int(r["context_from"]): r for r in read_csv(Path("r/positions.csv"))}
    assert list(rows) == [1, 2, 3, 5, 9, 17, 33, 65]
    assert float(rows[17]["nll"]) == 3 and float(rows[65]["nll"]) == 2
    assert float(rows[33]["nll"]) == (31 * 3 + 1 * 2) / 32  # contexts 33..63 cost 3, 64 costs 2
    assert sum(int(r["n_scored"]) for r in rows.values()) == 49152


@pytest.mark.parametrize(
    "protocol, stride, nll, n_scored", [("sliding", 512, 2.505859375, 1024), ("hf", 512, 2.5, 1022)]
)
def test_losses_by_token_on_1025_tokens(run, tmp_path, protocol, stride, nll, n_scored):
    """Token index 1-511 costs 3 nats, 512-1023 costs 2, 1024 costs 9; index 0 is never scored."""
    (tmp_path / "t.txt").write_text("a" * 512 + "b" * 512 + "c")
    ran = run("ppl", "--model", "oracle:byte:a=3,b=2,c=9", "--data", "t.txt", "--lengths", 512, "--protocol", protocol,
              "--stride", stride, "--out", "r")  # fmt: skip
    assert ran.code == 0, ran.err
    (row,) = read_csv(tmp_path / "r/ppl.csv")
    assert (float(row["nll"]), int(row["n_scored"])) == (nll, n_scored)
    if protocol == "sliding":
        assert float(row["ppl"]) == pytest.approx(12.2541, abs=1e-4)


def test_the_document_is_divided_by_what_was_scored(run, tmp_path):
    """3000 tokens at length 1024: two blocks, 2048 targets, 951 left over, ppl 256."""
    (tmp_path / "t.txt").write_text("x" * 3000)
    ran = run("ppl", "--model", "oracle:uniform", "--data", "t.txt", "--lengths", 1024, "--out", "r")
    (row,) = read_csv(tmp_path / "r/ppl.csv")
    assert (row["n_scored"], row["n_blocks"]) == ("2048", "2")
    assert float(row["nll"]) == pytest.approx(5.545177, abs=1e-6) and float(row["ppl"]) == pytest.approx(256, rel=1e-6)
    assert "951 targets left over" in ran.err and "only 2 blocks" in ran.err
    assert row["ci_low"] == "" and "no interval: blocks: 2" in row["detail"]


@pytest.mark.parametrize("text", ["plain ascii " * 200, "日本語" * 400])
def test_bits_per_byte_is_the_same_in_every_language(run, tmp_path, text):
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    run("ppl", "--model", "oracle:uniform", "--data", "t.txt", "--lengths", 64, "--out", "r")
    (row,) = read_csv(tmp_path / "r/ppl.csv")
    assert float(row["bits_per_byte"]) == pytest.approx(8, abs=1e-6) and row["n_bytes"] == row["n_scored"]


def test_one_nat_for_every_token(run, book):
    run("ppl", "--model", "oracle:constant:nats=1", "--data", book, "--lengths", "64,256", "--protocol", "nonoverlapping,sliding,hf",
        "--out", "r")  # fmt: skip
    rows = read_csv(Path("r/ppl.csv"))
    assert len(rows) == 6
    for row in rows:
        assert float(row["nll"]) == 1 and float(row["ppl"]) == math.e
        assert float(row["bits_per_byte"]) == pytest.approx(1 / math.log(2), rel=1e-15)


@pytest.mark.parametrize("nats, ppl, detail", [("800", "inf", "ppl overflows"), ("709.7", "finite", "")])
def test_overflow(run, book, nats, ppl, detail):
    ran = run("ppl", "--model", f"oracle:constant:nats={nats}", "--data", book, "--lengths", 64, "--out", "r")
    (row,) = read_csv(Path("r/ppl.csv"))
    assert ran.code == 0 and float(row["nll"]) == pytest.approx(float(nats), rel=1e-6) and row["status"] == "ok"
    assert math.isinf(float(row["ppl"])) == (ppl == "inf") and detail in row["detail"]
    json.loads(
        run(
            "ppl", "--model", f"oracle:constant:nats={nats}", "--data", book, "--lengths", 64, "--out", "j", "--json"
        ).out
    )


def test_losses_that_are_not_finite_are_no_numbers(run, book):
    ran = run("ppl", "--model", "oracle:constant:nats=nan", "--data", book, "--lengths", 64, "--out", "r", "--strict")
    (row,) = read_csv(Path("r/ppl.csv"))
    assert ran.code == 3 and row["status"] == "nonfinite" and row["nll"] == row["ppl"] == row["n_scored"] == ""
    assert "1 of 1 cells have no numbers: 1 nonfinite" in ran.out


def test_a_limit_is_said_before_anything_is_read(run, tmp_path):
    model = "oracle:uniform:limit=1024"
    ran = run("ppl", "--model", model, "--lengths", "512..2048", "--out", "r")
    rows = {r["length"]: r for r in read_csv(tmp_path / "r/ppl.csv")}
    assert ran.code == 0 and {n: r["status"] for n, r in rows.items()} == {
        "512": "ok",
        "1024": "ok",
        "2048": "unsupported",
    }
    assert "positions end at 1024, length 2048 was asked for" in ran.err and rows["2048"]["nll"] == ""
    assert run("ppl", "--model", model, "--lengths", "512..2048", "--out", "s", "--strict").code == 3
    ran = run("ppl", "--model", model, "--lengths", "2048", "--data", "nowhere.txt", "--out", "t")
    assert ran.code == 2 and "positions end at 1024" in ran.err and not (tmp_path / "t").exists()


def test_too_little_text(run, tmp_path):
    (tmp_path / "five.txt").write_text("abcde")
    ran = run("ppl", "--model", "oracle:uniform", "--data", "five.txt", "--lengths", "512..2048", "--out", "r")
    assert ran.code == 2 and "the longest document has 5 tokens" in ran.err and "needs 513" in ran.err
    assert not (tmp_path / "r").exists()
    (tmp_path / "t.txt").write_text("x" * 700)
    ran = run("ppl", "--model", "oracle:uniform", "--data", "t.txt", "--lengths", "512,1024", "--out", "s")
    rows = {r["length"]: r for r in read_csv(tmp_path / "s/ppl.csv")}
    assert ran.code == 0 and rows["512"]["status"] == "ok" and rows["1024"]["status"] == "too_short"
    assert "length 1024 is left out: the longest document has 700 tokens, needs 1025" in ran.err


@pytest.mark.parametrize("lengths", ["512-8192", "0", "-5", "abc", "", "1"])
def test_lengths_that_mean_nothing(run, tmp_path, lengths):
    ran = run("ppl", "--model", "oracle:uniform", f"--lengths={lengths}", "--out", "r")
    assert ran.code == 2 and "--lengths" in ran.err and "for example 512..8192" in ran.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("args, message", [
    (["--lengths", 512, "--stride", 0], "--stride 0: it must be between 1 and the smallest length, 512"),
    (["--lengths", 512, "--stride", 1024], "--stride 1024: it must be between 1 and"),
    (["--protocol", "slidng"], "--protocol 'slidng': it is one of nonoverlapping, sliding, hf"),
    (["--bos", "maybe"], "--bos maybe: it is one of auto, always, never"),
    (["--max-tokens", 0], "--max-tokens 0"),
    (["--batch-tokens", 0], "--batch-tokens 0"),
    (["--out", "res.csv"], "--out res.csv: give a folder"),
    (["--data", "nowhere.txt"], "--data 'nowhere.txt': no such file or folder"),
    (["--scheme", "alibi"], "has no position scheme"),
    (["--model", "oracle:uniform"], "named twice"),
    (["--model", "oracle:unifrom"], "there are: uniform, constant"),
    (["--model", "reference:rotary"], "no such reference model; there are: reference:all"),
    (["--resume", "--out", "nothing"], "it has no manifest.json"),
])  # fmt: skip
def test_bad_input_costs_nothing(run, tmp_path, args, message):
    ran = run("ppl", "--model", "oracle:uniform", *args)
    assert ran.code == 2, ran.err
    lines = [line for line in ran.err.splitlines() if not line.startswith("note: starting")]
    assert message in ran.err and len(lines) == 1 and "Traceback" not in ran.err
    assert not list(tmp_path.rglob("ppl.csv"))


def test_numbers_do_not_depend_on_the_batch(run, tmp_path):
    """Documents of 7, 300 and 512 tokens at length 4, batches of 1, 3 and 8 windows."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in (7, 300, 512):
        (folder / f"{n}.txt").write_text((BOOK * 2)[:n])
    sums = []
    for windows in (1, 3, 8):
        ran = run(
            "ppl",
            "--model",
            "reference:rope",
            "--data",
            folder,
            "--lengths",
            4,
            "--batch-tokens",
            4 * windows,
            "--out",
            f"r{windows}",
        )
        assert ran.code == 0, ran.err
        sums.append(
            [
                (r["doc"], r["block"], r["n_scored"], float(r["nll_sum"]))
                for r in read_csv(tmp_path / f"r{windows}/blocks.csv")
            ]
        )
    for other in sums[1:]:
        assert [s[:3] for s in other] == [s[:3] for s in sums[0]]
        assert [s[3] for s in other] == pytest.approx([s[3] for s in sums[0]], abs=4e-5)


def test_targets_do_not_depend_on_length_protocol_or_start_token(run, book):
    run("ppl", "--model", "oracle:uniform", "--data", book, "--lengths", "64..1024", "--protocol", "nonoverlapping,sliding",
        "--bos", "always", "--out", "r")  # fmt: skip
    rows = read_csv(Path("r/ppl.csv"))
    assert {r["n_scored"] for r in rows} == {str((len(BOOK) - 1) // 1024 * 1024)} and {r["bos"] for r in rows} == {
        "none"
    }


def test_what_does_not_fit_into_memory_is_oom_before_it_is_tried(run, book):
    ran = run("ppl", "--model", "oracle:uniform:gib=9", "--data", book, "--lengths", "64", "--out", "s", "--strict")
    (row,) = read_csv(Path("s/ppl.csv"))
    assert ran.code == 3 and row["status"] == "oom" and "needs about 576.0 GiB" in row["detail"] and row["nll"] == ""


def test_json_is_one_document(run, book):
    ran = run("ppl", "--model", CONTEXT, "--data", book, "--lengths", "64,128", "--out", "r", "--json")
    document = json.loads(ran.out)
    assert [row["length"] for row in document["ppl"]] == [64, 128] and document["run"] == "r" and document["sentence"]
    assert ran.err == ""


def test_a_dry_run_states_the_cost_and_leaves_nothing(run, tmp_path, book):
    ran = run("ppl", "--model", CONTEXT, "--data", book, "--lengths", "64..1024", "--dry-run")
    # five lengths, each twice the one before: (5 + 1) / 2 times the text
    assert ran.code == 0 and f"{3 * ((len(BOOK) - 1) // 1024 * 1024):,} tokens to feed" in ran.err
    assert not (tmp_path / "results").exists()


def test_from_python(book):
    import lengthbench

    table = lengthbench.ppl(CONTEXT, lengths="128,512", data=str(book))
    assert table["nll"].tolist() == [2.4921875, 2.123046875]

    import torch

    class Flat(torch.nn.Module):
        train_length = 32

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, tokens):
            return self.weight.expand(*tokens.shape, 256)

    table = lengthbench.ppl(Flat(), lengths=[32, 64], data=str(book))
    assert table["ppl"].tolist() == pytest.approx([256, 256]) and table["model"].tolist() == ["Flat", "Flat"]


def test_longrope_says_which_factors_a_length_runs_with(run, tmp_path):
    for name, value in (("short", 1.0), ("long", 2.0)):
        (tmp_path / f"{name}.txt").write_text(" ".join([str(value)] * 8))
    scheme = f"longrope:original=512,short={tmp_path}/short.txt,long={tmp_path}/long.txt,factor=2"
    ran = run(
        "ppl",
        "-m",
        "reference:rope",
        "--scheme",
        scheme,
        "--lengths",
        "256..1024",
        "--max-tokens",
        "1024",
        "--out",
        "r",
    )
    assert ran.code == 0, ran.err
    found = {r["length"]: r["detail"] for r in read_csv(tmp_path / "r" / "ppl.csv")}
    assert [found[n].rpartition("; ")[2] for n in ("256", "512", "1024")] == [
        "short factors",
        "short factors",
        "long factors",
    ]


def test_an_executor_that_there_is_not_is_refused(run):
    assert run("ppl", "-m", "oracle:constant:nats=1", "--lengths", "64", "--executor", "local", "--dry-run").code == 0
    ran = run("ppl", "-m", "oracle:constant:nats=1", "--lengths", "64", "--executor", "ray")
    assert ran.code == 2 and "--executor ray: passes run on this machine only" in ran.err
