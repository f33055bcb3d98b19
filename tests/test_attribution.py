"""Attribution: exact values of stubs, identities on the stored sums, planted models, published tables."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import read_csv

import lengthbench
from lengthbench import windows
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.trials import Scores

COMPONENTS = ("total", "early_token", "beyond_base", "window_end", "length_effect", "content_use")


def nats(frame, length, method="cut"):
    """Component -> nats at `length`."""
    own = frame[(frame.length == length) & (frame.method == method)]
    assert (own.status == "ok").all(), own[["component", "status", "detail"]]
    return dict(zip(own.component, own.nats, strict=True))


class Stub:
    """A model of one's own whose loss is a function of the trial."""

    train_length, tokenizer, scheme = 256, ByteTokenizer(), "stub"

    def __init__(self, loss, prefix_stable=True):
        self.loss, self.prefix_stable = loss, prefix_stable

    def score(self, trials):
        found = [np.broadcast_to(self.loss(t), t.scored.shape).astype(np.float32) for t in trials]
        return [Scores(nll, np.zeros(len(nll), bool)) for nll in found]

    def extra_bytes(self, n_fed, batch):
        return 0


@pytest.fixture(scope="module")
def periodic(tmp_path_factory):
    """Two documents that repeat themselves every 400 bytes, without a letter in common."""
    folder = tmp_path_factory.mktemp("periodic")
    rng = np.random.default_rng(0)
    for name, letters in (("a", b"abcdefgh"), ("b", b"stuvwxyz")):
        piece = bytes(rng.choice(list(letters), 400).tolist())
        (folder / f"{name}.txt").write_bytes(piece * 30)
    return str(folder)


@pytest.mark.parametrize("oracle, base, stride, expected", [
    ("context:at=64,below=3,above=2", 128, 32, (0.46142578125, 0.46142578125, 0.0)),
    ("context:at=1024,below=2,above=1.5", 512, None, (0.250244140625, 0.0, 0.250244140625)),
    ("index:at=513,below=1,above=2", 512, None, (-0.75, 0.0, -0.75)),
    ("constant:nats=1", 512, None, (0.0, 0.0, 0.0)),
])  # fmt: skip
def test_stubs_give_the_values_worked_out_by_hand(oracle, base, stride, expected):
    found = nats(lengthbench.attribute(f"oracle:{oracle}", f"{base}..2048", base, stride=stride, max_tokens=8192), 2048)
    assert tuple(found[c] for c in COMPONENTS[:3]) == expected
    assert found["content_use"] == 0


@pytest.mark.parametrize(
    "base, stride, lengths", [(256, None, "256..1024"), (96, 24, "96,192,384"), (128, 1, "128,512")]
)
def test_a_model_that_stops_reading_at_the_base_has_content_use_0(base, stride, lengths):
    oracle = f"oracle:power:nats=3,exponent=0.1,window={base}"
    frame = lengthbench.attribute(oracle, lengths, base, stride=stride, max_tokens=4096)
    content = frame[frame.component == "content_use"].nats
    assert len(content) == len(frame.length.unique()) and (content == 0).all()
    assert (frame.reading != "uses far context").all()


def test_use_of_far_context_is_found(periodic):
    """400 bytes back stands the answer: visible from context 400 on, and only in the true text."""
    frame = lengthbench.attribute("oracle:copy:distance=400,hit=0.5,miss=3", "256..1024", data=periodic)
    for length in (512, 1024):
        found = nats(frame, length)
        seen = (length - 400 + 1) / length
        assert found["early_token"] == 0
        assert found["beyond_base"] == pytest.approx(2.5 * seen, abs=1e-12)
        assert found["content_use"] == 2.5 and found["length_effect"] == 0
        assert set(frame[frame.length == length].reading) == {"uses far context"}
    assert "long-range use" in frame.verdict.iloc[-1] and "no evidence" not in frame.verdict.iloc[-1]


def test_a_model_that_only_survives_uses_nothing(periodic):
    frame = lengthbench.attribute("oracle:constant:nats=2", "256..1024", data=periodic)
    assert all(value == 0 for value in nats(frame, 1024).values())
    assert set(frame.reading) == {"no measurable change"}
    assert "no evidence of long-range use" in frame.verdict.iloc[-1]


def test_a_model_that_breaks_may_still_read(periodic):
    """+1 nat beyond the 256th token of the window; -0.5 where the true text stands 400 back."""

    def loss(trial):
        back = trial.tokens[np.maximum(trial.scored - 400, 0)]
        hit = (trial.scored >= 400) & (back == trial.targets)
        return 2.0 + (trial.rows >= 256) - 0.5 * hit

    frame = lengthbench.attribute(Stub(loss), "256..1024", data=periodic)
    found = nats(frame, 1024)
    assert found["beyond_base"] == pytest.approx(-768 / 1024 + 0.5 * 625 / 1024, abs=1e-12)
    assert found["content_use"] == 0.5 and found["length_effect"] == -1
    assert set(frame[frame.length == 1024].reading) == {"worse when longer"}
    assert "so it is read, but the longer window does more harm" in frame.verdict.iloc[-1]


def noisy(trial):
    """Losses that depend on the target, its context and what stands 300 back: nothing in them is round."""
    back = trial.tokens[np.maximum(trial.scored - 300, 0)] * (trial.scored >= 300)
    return 1 + trial.targets / 77 + np.sqrt(1 / trial.scored) + back / 991


def test_identities_hold_on_the_stored_sums(tmp_path):
    stub = Stub(noisy)
    frame = lengthbench.attribute(stub, "256..1024", method="cut,sliding", max_tokens=8192, out=str(tmp_path / "run"))
    for length in (512, 1024):
        for method in ("cut", "sliding"):
            found = nats(frame, length, method)
            assert found["total"] == pytest.approx(found["early_token"] + found["beyond_base"], abs=1e-9)
        found = nats(frame, length)
        assert found["window_end"] == pytest.approx(found["length_effect"] + found["content_use"], abs=1e-9)
    sums = {}
    for row in read_csv(tmp_path / "run" / "blocks.csv"):
        key = row["protocol"], int(row["length"]), row["condition"]
        had = sums.get(key, (0.0, 0))
        sums[key] = had[0] + float(row["nll_sum"]), had[1] + int(row["n_scored"])
    mean = {key: total / n for key, (total, n) in sums.items()}
    found = nats(frame, 1024)
    assert found["total"] == pytest.approx(
        mean["nonoverlapping", 256, "base"] - mean["nonoverlapping", 1024, "full"], abs=1e-12
    )
    assert found["beyond_base"] == pytest.approx(
        mean["cut", 1024, "cut"] - mean["nonoverlapping", 1024, "full"], abs=1e-12
    )
    assert found["content_use"] == pytest.approx(
        mean["window_end", 1024, "swap"] - mean["window_end", 1024, "full"], abs=1e-12
    )


def test_without_prefix_stability_the_numbers_are_the_same():
    """Whether passes may be shared is a matter of cost: losses that do not depend on the length come out equal."""
    frames = [lengthbench.attribute(Stub(noisy, stable), "256..1024", max_tokens=8192) for stable in (True, False)]
    assert frames[0].nats.tolist() == frames[1].nats.tolist()


def test_a_loss_that_depends_on_the_window_is_attributed_beyond_the_base():
    """0.1 nat for each doubling of the window: everywhere in it, so no early token is relieved by it."""
    frame = lengthbench.attribute(
        Stub(lambda t: 1 + 0.1 * math.log2(t.n_fed / 256), False), "256..1024", max_tokens=8192
    )
    found = nats(frame, 1024)
    assert found["early_token"] == pytest.approx(0, abs=1e-6)
    assert found["beyond_base"] == pytest.approx(-0.2, abs=1e-6)
    assert found["length_effect"] == pytest.approx(-0.2, abs=1e-6)


def test_sampling_estimates_the_same_and_says_so(tmp_path):
    """Of 12 groups a quarter: D is untouched, G is estimated without bias, its interval is wider."""
    wide = lengthbench.attribute(Stub(noisy), "256,1024", max_tokens=32768)
    few = Stub(noisy)
    from lengthbench.api import frame
    from lengthbench.probes.attribution import Attribution

    thin = frame(few, Attribution((256, 1024), sample=4), max_tokens=32768, out=str(tmp_path / "run"))
    a, b = nats(wide, 1024), nats(thin, 1024)
    assert a["total"] == b["total"]
    assert b["total"] == pytest.approx(b["early_token"] + b["beyond_base"], abs=1e-9)
    width = {
        n: float((f[f.component == "beyond_base"].nats_ci_high - f[f.component == "beyond_base"].nats_ci_low).iloc[0])
        for n, f in (("all", wide), ("few", thin))
    }
    assert abs(a["beyond_base"] - b["beyond_base"]) < width["few"]
    assert width["few"] > 1.2 * width["all"]
    details = {
        r["detail"]
        for r in read_csv(tmp_path / "run" / "blocks.csv")
        if r["condition"] == "cut" and r["protocol"] == "cut"
    }
    assert details == {"sampled: 192 targets beyond 256 stand for all"}


def test_the_s_bound_is_what_a_stride_can_credit():
    """Losses fall by 0.01 a token of context up to 256 and no further: cut lacks up to 63 tokens, full none."""
    frame = lengthbench.attribute(Stub(lambda t: 5 - 0.01 * np.minimum(t.scored, 256)), "256,1024", max_tokens=8192)
    own = frame[frame.component == "beyond_base"].iloc[0]
    assert own.s_bound == pytest.approx(0.63, abs=1e-5)
    assert own.nats == pytest.approx(0.01 * 31.5 * 768 / 1024, abs=1e-5)
    assert own.reading != "uses far context"
    exact = lengthbench.attribute(
        Stub(lambda t: 5 - 0.01 * np.minimum(t.scored, 256)), "256,1024", stride=1, max_tokens=8192
    )
    assert exact[exact.component == "beyond_base"].nats.iloc[0] == pytest.approx(0, abs=1e-6)


def test_sliding_is_the_method_of_the_paper(periodic):
    """3 nats below 64 tokens of context: curse(128) = 63/128, curse(512) = 63/512, and nothing beyond."""
    oracle = "oracle:context:at=64,below=3,above=2"
    frame = lengthbench.attribute(oracle, "128,512", 128, method="sliding", max_tokens=8192)
    found = nats(frame, 512, "sliding")
    assert found == {"total": 63 / 128 - 63 / 512, "early_token": 63 / 128 - 63 / 512, "beyond_base": 0.0}
    from_the_start = lengthbench.attribute(oracle, "128,512", 128, method="sliding", data=periodic)
    assert nats(from_the_start, 512, "sliding") == found
    assert set(from_the_start.detail) == {"2 clipped blocks left out"}


def test_a_text_of_one_block_is_clipped(tmp_path):
    (tmp_path / "short.txt").write_text("x" * 600)
    frame = lengthbench.attribute(
        "oracle:constant:nats=1", "128,512", 128, method="sliding", data=str(tmp_path / "short.txt")
    )
    assert set(frame.status) == {"clipped"} and frame.nats.isna().all()


def test_the_early_share_is_the_whole_difference():
    """T1: 512 against 1024 tokens on the same targets: the gain is relief, all of it."""
    frame = lengthbench.attribute("oracle:context:at=64,below=3,above=2", "512,1024", 512, max_tokens=8192)
    own = frame[frame.length == 1024].set_index("component")
    assert own.share["early_token"] == 1 and own.share["beyond_base"] == 0
    assert set(own.reading) == {"early-token relief only"}
    assert "100 % early-token relief, 0 % beyond 512" in own.verdict.iloc[0]


def test_a_start_token_moves_contexts_and_no_target(tmp_path):
    def with_start(policy):
        stub = Stub(noisy)
        stub.tokenizer = Started()
        return lengthbench.attribute(stub, "256,1024", max_tokens=8192, bos=policy, out=str(tmp_path / policy))

    class Started(ByteTokenizer):
        start, adds_start = 0, True

    frames = {policy: with_start(policy) for policy in ("never", "always")}
    assert (frames["never"].n_scored.tolist()) == (frames["always"].n_scored.tolist())
    blocks = read_csv(tmp_path / "always" / "blocks.csv")
    assert {r["status"] for r in blocks} == {"ok"}


def test_lengths_a_model_cannot_be_fed_have_no_numbers():
    frame = lengthbench.attribute("oracle:constant:nats=1,train=256,limit=512", "256..1024", max_tokens=8192)
    beyond = frame[frame.length == 1024]
    assert set(beyond.status) == {"unsupported"} and beyond.nats.isna().all()
    assert set(frame[frame.length == 512].status) == {"ok"}


def test_if_no_length_is_beyond_the_training_length_the_smallest_is_the_base(run):
    ran = run(
        "attribute",
        "-m",
        "oracle:constant:nats=1,train=4096",
        "--lengths",
        "256,512",
        "--max-tokens",
        "4096",
        "--out",
        "r",
    )
    assert ran.code == 0
    assert "no length is beyond 4096; 256 is taken as its base length" in ran.err
    assert {row["base_length"] for row in read_csv_of("r/attribution.csv")} == {"256"}


def read_csv_of(path):

    return read_csv(Path(path))


def test_one_document_swaps_with_itself_far_away(tmp_path, run):
    text = tmp_path / "one.txt"
    text.write_text("".join(chr(97 + i * i % 26) for i in range(20_000)))
    ran = run("attribute", "-m", "oracle:constant:nats=1", "--lengths", "256,1024", "--data", text, "--out", "r")
    assert ran.code == 0
    swaps = [r for r in read_csv_of("r/blocks.csv") if r["condition"] == "swap"]
    for row in swaps:
        begin = 1024 * int(row["block"])
        at = int(row["detail"].rpartition("@")[2])
        assert abs(at - begin) >= 2 * 1024 - 1024, "its end or start keeps 2048 tokens away from the window"
        assert at + 1024 - 319 <= begin - 2048 + 1 or at >= begin + 2048


def test_without_other_text_content_use_is_not_made_up(tmp_path, run):
    text = tmp_path / "one.txt"
    text.write_text("abcde" * 250)
    ran = run("attribute", "-m", "oracle:constant:nats=1", "--lengths", "256,1024", "--data", text, "--out", "r")
    assert ran.code == 0
    rows = {r["component"]: r for r in read_csv_of("r/attribution.csv")}
    assert rows["content_use"]["status"] == "too_short" and rows["content_use"]["nats"] == ""
    assert rows["window_end"]["status"] == "ok"


def test_press_et_al_2022():
    """measurement: ALiBi trained at 512 and 1024, WikiText-103 validation, S = 1."""
    from lengthbench.probes import published

    found = {(s.train_length, v.length): v for s, _, v in published.attribute(published.read("press2022"), None, ())}
    for place, expected in {(512, 3072): (0.0698, 0.0874, -0.0176), (1024, 3072): (0.0382, 0.0642, -0.0260)}.items():
        own = found[place]
        assert [round(c.nats, 4) for c in (own.total, own.early, own.beyond)] == list(expected)
        assert own.total.nats == pytest.approx(own.early.nats + own.beyond.nats, abs=1e-12)


def test_from_press2022_needs_no_model(run):
    ran = run("attribute", "--from", "press2022", "--out", "r")
    assert ran.code == 0
    assert "125 % early-token relief, -25 % beyond 512" in ran.out
    rows = read_csv_of("r/attribution.csv")
    assert {r["nats_ci_low"] for r in rows} == {""} and {r["status"] for r in rows} == {"ok"}
    own = [r for r in rows if r["length"] == "3072" and r["train_length"] == "512" and r["component"] == "beyond_base"]
    assert float(own[0]["nats"]) == pytest.approx(-0.0176, abs=5e-5)


@pytest.mark.parametrize("text, words", [
    ("a,b\n1,2\n", "no column method or model"),
    ("method,train_len,eval_len,protocol,stride,ppl\nm,512,512,nonoverlapping,512,OOM\n", "no row with a perplexity"),
    ("method,train_len,eval_len,protocol,stride,ppl\nm,x,512,nonoverlapping,512,9\n", "line 2"),
    ("method,train_len,eval_len,protocol,stride,ppl\nm,512,512,sliding,1,9\nm,512,512,sliding,1,8\n", "two perplexities"),
    ("method,train_len,eval_len,protocol,stride,ppl\nm,512,512,nonoverlapping,512,9\n", "no model in it"),
])  # fmt: skip
def test_tables_that_cannot_be_used(run, tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    ran = run("attribute", "--from", tmp_path / "t.csv")
    assert ran.code == 2 and words in ran.err


def test_from_a_table_of_our_own(run):
    """ppl.csv has other column names; equal strides at both lengths are what counts."""
    oracle = "oracle:context:at=64,below=3,above=2,train=128"
    assert (
        run(
            "ppl",
            "-m",
            oracle,
            "--lengths",
            "128,512",
            "--protocol",
            "nonoverlapping,sliding",
            "--stride",
            "16",
            "--max-tokens",
            "8192",
            "--out",
            "p",
        ).code
        == 0
    )
    ran = run("attribute", "--from", "p/ppl.csv", "--out", "r")
    assert ran.code == 0
    rows = {r["component"]: float(r["nats"]) for r in read_csv_of("r/attribution.csv")}
    assert rows["total"] == pytest.approx(0.369140625, abs=1e-12)
    assert abs(rows["beyond_base"]) < 0.01, (
        "the first windows of each book are clipped, which ppl.csv does not tell apart"
    )


@pytest.mark.parametrize("args, words", [
    (("--method", "magic"), "--method 'magic'"),
    (("--stride", "0"), "--stride 0"),
    (("--stride", "300"), "at most the base length, 256"),
    (("--base", "0"), "--base 0"),
    (("--sample", "0"), "--sample 0"),
    (("--top", "-1"), "--top -1"),
    (("--lengths", "256"), "give two or more"),
])  # fmt: skip
def test_bad_options_are_refused(run, args, words):
    ran = run("attribute", "-m", "oracle:constant:nats=1", *args)
    assert ran.code == 2 and words in ran.err


def test_json_is_one_document(run):
    ran = run("attribute", "-m", "oracle:constant:nats=1", "--lengths", "256,512", "--max-tokens", "2048", "--json")
    document = json.loads(ran.out)
    assert {row["component"] for row in document["attribution"]} == set(COMPONENTS)


def test_cut_windows_as_drawn():
    shown = [(list(range(w.begin, w.end)), list(range(w.first, w.end + 1))) for w in windows.cut(1, 8, 8, 4, 2)]
    assert shown == [([0, 1, 2, 3], [1, 2, 3, 4]), ([2, 3, 4, 5], [5, 6]), ([4, 5, 6, 7], [7, 8])]


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("length, base, stride", [(64, 16, 4), (64, 16, 16), (60, 16, 7), (48, 32, 5), (64, 16, 1)])
def test_cut_scores_every_target_once_within_its_window(length, base, stride, start):
    cut = list(windows.cut(1, 4 * length, length, base, stride, start))
    assert [t for w in cut for t in range(w.first, w.end + 1)] == list(range(1, 4 * length + 1))
    for w in cut:
        fed = w.end - w.begin + start
        assert fed <= base and w.begin // length == (w.first - 1) // length, "inside the long window"
        context = (w.first - 1) % length
        assert fed == base or context < base


def test_a_base_beyond_a_models_limit_is_unsupported_and_not_fed():
    frame = lengthbench.attribute(
        ["oracle:constant:nats=1,limit=256", "oracle:constant:nats=2"], "512,1024", 512, max_tokens=8192
    )
    assert set(frame[frame.model.str.contains("limit")].status) == {"unsupported"}
    assert set(frame[~frame.model.str.contains("limit")].status) == {"ok"}


def test_losses_that_are_not_finite_leave_no_numbers(tmp_path):
    """One window of 1024 in the true text gives NaN: full at 1024 has no number, what does not need it has."""
    spoiled = []

    def loss(trial):
        if trial.n_fed == 1024 and not spoiled:
            spoiled.append(trial.tokens.tobytes())
        bad = trial.n_fed == 1024 and trial.tokens.tobytes() == spoiled[0]
        return np.where(np.arange(len(trial.scored)) == 5, np.nan if bad else 1.0, 1.0)

    frame = lengthbench.attribute(Stub(loss, False), "256,512,1024", max_tokens=8192, out=str(tmp_path / "r"))
    own = frame[frame.length == 1024].set_index("component")
    assert own.status["total"] == own.status["beyond_base"] == "nonfinite" and own.status["early_token"] == "ok"
    assert math.isnan(own.nats["total"]) and own.verdict.isna().all()
    assert set(frame[frame.length == 512].status) == {"ok"}


def test_too_little_text_is_said_in_tokens(run):
    Path("five.txt").write_text("hello")
    ran = run("attribute", "-m", "oracle:uniform", "--data", "five.txt")
    assert ran.code == 2 and "the longest document has 5 tokens" in ran.err
    Path("some.txt").write_text("x" * 700)
    ran = run("attribute", "-m", "oracle:uniform", "--data", "some.txt", "--out", "r")
    assert ran.code == 0 and "only 1 block: no intervals" in ran.err
    rows = read_csv(Path("r/attribution.csv"))
    assert {r["nats_ci_low"] for r in rows} == {""} and {r["reading"] for r in rows} == {"no interval"}


def test_what_is_read_and_what_is_gained_are_two_things():
    from lengthbench.probes.attribution_verdict import Change, Verdict

    def change(nats, half):
        return Change(3.0, 3.0 - nats, nats, nats - half, nats + half)

    def verdict(beyond, content, exceeds, total=0.1):
        parts = (change(total, 0.01), change(total - beyond, 0.01), change(beyond, 0.005))
        return Verdict("m", "cut", 512, 2048, *parts, None if content is None else change(content, 0.02), exceeds)

    assert verdict(0.03, 0.05, True).reading == "uses far context"
    assert verdict(0.03, 0.05, False).reading == "reads far context, gain too small to tell"
    assert "read, but the longer window gains no more than the stride allows" in verdict(0.03, 0.05, False).text
    assert verdict(0.03, 0.01, True).reading == "early-token relief only"
    assert verdict(-0.02, 0.05, False).reading == "early-token relief, damage beyond"
    assert verdict(0.03, None, True).reading == "gain beyond 512, cause not tested"
