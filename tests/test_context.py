"""The ladder: fixed targets, growing context, best rung and horizon of stubs worked out by hand."""

import numpy as np
import pytest
from conftest import read_csv
from test_attribution import Stub

import lengthbench
from lengthbench.probes import affordable


def rungs(frame, condition="full"):
    own = frame[(frame.condition == condition) & (frame.status == "ok")]
    return dict(zip(own.context_max, own.nll, strict=True))


def test_rungs_are_the_contexts_of_the_definition():
    """S = 64: 2S..3S-1, 4S..5S-1, ... and last L-S+1..L; every rung scores the same targets."""
    frame = lengthbench.context("oracle:constant:nats=1,train=256", 2048, 64, groups=5)
    assert list(zip(frame.context_min, frame.context_max, strict=True)) == [
        (128, 191), (256, 319), (512, 575), (1024, 1087), (1985, 2048),
    ]  # fmt: skip
    assert set(frame.n_scored) == {5 * 64} and set(frame.nll) == {1.0}


def test_losses_are_those_of_the_contexts():
    """3 nats below 150 tokens of context, else 2: 22 of the 64 targets of the first rung."""
    frame = lengthbench.context("oracle:context:at=150,below=3,above=2,train=256", 1024, 64, groups=5)
    assert rungs(frame) == {191: 2 + 22 / 64, 319: 2.0, 575: 2.0, 1024: 2.0}
    assert frame.set_index("context_max").above_best[191] == 22 / 64


def test_best_rung_and_horizon(run):
    ran = run(
        "context",
        "-m",
        "oracle:power:nats=3,exponent=0.1,window=500,train=256",
        "--length",
        "4096",
        "--stride",
        "64",
        "--groups",
        "6",
        "--out",
        "r",
    )
    assert ran.code == 0
    (row,) = read_csv_of("r/context_summary.csv")
    assert (row["best_rung"], row["horizon"], row["horizon_low"], row["horizon_high"]) == ("575", "575", "575", "575")
    assert "best with 575 tokens of context" in row["verdict"]


def test_a_model_that_breaks_is_best_inside_the_ladder(run):
    ran = run(
        "context",
        "-m",
        "oracle:index:at=513,below=1,above=2,train=256",
        "--length",
        "2048",
        "--stride",
        "64",
        "--groups",
        "6",
        "--out",
        "r",
    )
    assert ran.code == 0
    (row,) = read_csv_of("r/context_summary.csv")
    assert row["best_rung"] == "191" and "2048 are worse by 1.000 nat" in row["verdict"]


def read_csv_of(path):
    from pathlib import Path

    return read_csv(Path(path))


def test_noise_makes_the_horizon_uncertain(run, tmp_path):
    """Rung 575 is 0.02 better than 319 on average, with far more spread between groups than that."""
    from lengthbench.api import frame
    from lengthbench.probes.context import ContextLadder

    def loss(trial):
        spread = (int(trial.tokens[-20:].sum()) % 7 - 3) / 50 if trial.n_fed >= 575 else 0.0
        return 2.0 - 0.02 * (trial.n_fed >= 575) + spread

    frame(Stub(loss), ContextLadder((1024,), stride=64, groups=14), out=str(tmp_path / "r"))
    (row,) = read_csv(tmp_path / "r" / "context_summary.csv")
    assert row["horizon"] == "575" and row["horizon_low"] == "191"


def test_swap_on_every_rung_beyond_the_base(tmp_path):
    """What stands 400 back helps; from the other document it does not."""
    from lengthbench.api import frame
    from lengthbench.probes.context import ContextLadder

    rng = np.random.default_rng(0)
    for name, letters in (("a", b"abcdefgh"), ("b", b"stuvwxyz")):
        (tmp_path / f"{name}.txt").write_bytes(bytes(rng.choice(list(letters), 400).tolist()) * 30)

    found = frame(
        "oracle:copy:distance=400,hit=0.5,miss=3",
        ContextLadder((1024,), stride=64, groups=8, swap=True),
        data=str(tmp_path),
    )
    assert rungs(found) == {191: 3.0, 319: 3.0, 575: 0.5, 1024: 0.5}
    assert rungs(found, "swap") == {575: 3.0, 1024: 3.0}


def test_beyond_a_limit_rungs_are_unsupported():
    frame = lengthbench.context("oracle:constant:nats=1,train=256,limit=600", 2048, 64, groups=5)
    assert frame.set_index("context_max").status.to_dict() == {
        191: "ok",
        319: "ok",
        575: "ok",
        1087: "unsupported",
        2048: "unsupported",
    }


def test_affordable_chooses_by_the_pilot(run):
    ran = run("context", "-m", "oracle:byte:e=3,t=1,train=256", "--length", "512", "--affordable", "0.05", "--out", "r")
    assert ran.code == 0 and "0.05 nat needs 5 groups" in ran.err, "losses by byte do not change with context"
    (row,) = read_csv_of("r/context_summary.csv")
    assert row["n_groups"] == "5"


def test_affordable_scales_with_the_square_of_the_width():
    rows = [
        {"model": "m", "scheme": "s", "scheme_params": "", "status": "ok", "n_groups": 8, "above_best": above, "above_best_ci_low": above - half, "above_best_ci_high": above + half}
        for above, half in ((0.0, 0.0), (0.05, 0.06), (2.0, 5.0))
    ]  # fmt: skip
    assert affordable.choose(rows, 0.04, 0.01).groups == 8 * 9
    with pytest.raises(Exception, match="--affordable 0"):
        affordable.announce(0)


@pytest.mark.parametrize("args, words", [
    (("--groups", "0"), "--groups 0"),
    (("--epsilon", "0"), "--epsilon 0"),
    (("--length", "90"), "needs 96 tokens or more"),
    (("--length", "100", "--stride", "50"), "needs 150 or more"),
    (("--affordable", "-1"), "--affordable -1"),
])  # fmt: skip
def test_bad_options_are_refused(run, args, words):
    ran = run("context", "-m", "oracle:constant:nats=1,train=256", *args)
    assert ran.code == 2 and words in ran.err
