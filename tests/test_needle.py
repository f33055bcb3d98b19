"""Retrieval from growing inputs: planted models, controls, exact lengths, prompts of others, generated text."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import read_csv
from test_attribution import Stub

from lengthbench import positions, stats
from lengthbench.api import frame
from lengthbench.model import LoadOptions
from lengthbench.models import catalog
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.probes import needle_verdict
from lengthbench.probes.needle import Needle
from lengthbench.retrieval import frames
from lengthbench.trials import Scores

PLACES = (("start", 0.0), ("middle", 0.5), ("end", 1.0))


def rates(table, column="exact_rate"):
    """Length -> rates at start, middle, end."""
    ok = table[table.status == "ok"]
    return {
        n: [float(ok[(ok.length == n) & (ok.position == p)][column].iloc[0]) for p, _ in PLACES]
        for n in sorted(set(ok.length))
    }


def test_a_window_of_300_retrieves_what_is_in_it():
    """design: exact 1,1,1 at 256 and 0,0,1 at 1024, against nothing without the evidence."""
    found = frame("oracle:recall:window=300", Needle((256, 1024), tasks=("recall",), trials=6))
    assert rates(found) == {256: [1, 1, 1], 1024: [0, 0, 1]}
    assert set(found.absent_exact_rate) == {0.0} and set(found.oracle_exact_rate) == {1.0}
    beats = {(n, p): a for n, p, a in zip(found.length, found.position, found.above_absent, strict=True)}
    assert beats[1024, "end"] and not beats[1024, "start"]
    gain = rates(found, "evidence_gain")
    assert gain[1024][0] == 0 and gain[1024][2] == pytest.approx(5 * 4.9, abs=1e-5), "five digits, 5 nats against 0.1"


def test_the_choice_is_right_where_the_answer_is_in_sight():
    found = frame("oracle:recall:window=300", Needle((1024,), tasks=("recall",), trials=6))
    assert rates(found, "choice_rate") == {1024: [0, 0, 1]} and set(found.chance) == {0.2}


def test_a_model_that_always_says_48213_scores_nothing_net_of_absent():
    """N7: prompts whose answer it happens to say do not become retrieval."""
    said = np.frombuffer(b"48213", np.uint8)

    class Always(Stub):
        def score(self, trials):
            found = super().score(trials)
            return [
                Scores(s.nll, t.targets == np.resize(said, len(t.targets))) for s, t in zip(found, trials, strict=True)
            ]

    found = frame(Always(lambda t: 1.0), Needle((256,), tasks=("recall",), trials=6))
    assert set(found.exact_rate) == {0.0} and not found.above_absent.any() and set(found.evidence_gain) == {0.0}


@pytest.fixture(scope="module")
def rope(tmp_path_factory):
    """reference:rope on recall around its training length, with all arms."""
    folder = tmp_path_factory.mktemp("needle") / "r"
    arms = ("evidence", "absent", "oracle", "decoy")
    table = frame("reference:rope", Needle((128, 256, 512), trials=6, arms=arms), out=str(folder))
    return table, folder


@pytest.mark.slow
def test_rope_retrieves_within_its_training_length_and_not_beyond(rope):
    table, _ = rope
    found = rates(table)
    assert min(found[128] + found[256]) >= 5 / 6 and found[512] == [0, 0, 0]
    assert set(table.task) == {"recall"}, "the task that the family was trained for is its default"
    assert set(table.absent_exact_rate) == {0.0}
    assert set(table[table.length == 256].decoy_exact_rate) == {0.0}, "another key is not the answer"


@pytest.mark.slow
def test_trials_say_what_was_fed(rope):
    _, folder = rope
    rows = read_csv(folder / "trials.csv")
    for row in rows:
        assert int(row["n_prompt_tokens"]) + int(row["n_answer_tokens"]) == int(row["length"])
    evidence = [r for r in rows if r["arm"] == "evidence" and r["length"] == "256"]
    assert len({r["prompt_sha256"] for r in evidence}) == 18
    assert {r["answer"] for r in evidence if r["trial"] == "0"} == {
        next(r["answer"] for r in rows if r["arm"] == "oracle" and r["trial"] == "0")
    }
    first = json.loads((folder / "manifest.json").read_text())["models"][0]["first_prompt"]["recall"]
    assert len(first.encode()) == 128 and evidence


@pytest.mark.slow
def test_shared_contexts_give_the_plain_ways_losses(rope):
    """The plan feeds a fifth of the tokens; a model without chains gives the same to 1e-4 a token."""
    (card,) = catalog.describe(["reference:rope"], [], LoadOptions())
    own = card.load()

    class Plain:
        tokenizer, train_length, score, extra_bytes = own.tokenizer, 256, own.score, own.extra_bytes

    table, _ = rope
    plain = frame(Plain(), Needle((256,), tasks=("recall",), trials=6))
    shared = table[table.length == 256]
    assert plain.exact_rate.tolist() == shared.exact_rate.tolist()
    assert np.abs(plain.answer_nll.to_numpy() - shared.answer_nll.to_numpy()).max() < 5e-4
    assert plain.choice_rate.tolist() == shared.choice_rate.tolist()


def test_lengths_below_the_smallest_are_refused_with_it(run):
    """E3: within seconds, naming the smallest possible length."""
    ran = run("needle", "--lengths", "16", "--positions", "start,middle,end")
    assert ran.code == 2 and "length 16 is too short" in ran.err and "the smallest possible is 9" in ran.err
    ran = run(
        "needle",
        "-m",
        "oracle:recall:window=300",
        "--task",
        "recall",
        "--lengths",
        "16,256",
        "--trials",
        "5",
        "--out",
        "r",
    )
    assert ran.code == 0
    assert {r["length"]: r["status"] for r in read_csv(Path("r/needle.csv"))} == {"16": "too_short", "256": "ok"}


def test_lengths_beyond_a_limit_are_unsupported(run):
    ran = run(
        "needle",
        "-m",
        "oracle:recall:window=300,limit=300",
        "--task",
        "recall",
        "--lengths",
        "256,512",
        "--trials",
        "5",
        "--out",
        "r",
    )
    assert ran.code == 0
    assert {r["length"]: r["status"] for r in read_csv(Path("r/needle.csv"))} == {"256": "ok", "512": "unsupported"}
    assert "no positions for 512" in ran.out


def test_prompts_of_others(run):
    rows = [
        {
            "input": "x" * 200 + f" The number is {n}. " + "y" * gap + " The number is",
            "outputs": [str(n)],
            "length": 1024,
        }
        for n, gap in ((48213, 10), (91372, 500))
    ]
    Path("others.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ran = run("needle", "-m", "oracle:recall:window=300", "--jsonl", "others.jsonl", "--arms", "evidence", "--out", "r")
    assert ran.code == 0, ran.err
    (row,) = read_csv(Path("r/needle.csv"))
    assert (row["task"], row["position"], row["length"], row["exact_rate"], row["n_trials"]) == (
        "others",
        "given",
        "1024",
        "0.5",
        "2",
    )


def test_a_task_of_ones_own_with_documents(run):
    """One's own clauses: the answer is found where it stands near the question, and only there."""
    clauses = [
        {"text": f"Clause {n}. The deposit for unit {n} is {7000 + n * 13} yen and is returned within thirty days.",
         "question": f"What is the deposit for unit {n}?", "answer": f"{7000 + n * 13} yen"}
        for n in range(30)
    ]  # fmt: skip
    Path("clauses.jsonl").write_text("\n".join(map(json.dumps, clauses)))
    Path("mine.toml").write_text(
        'description = "our leases"\nversion = 1\nlanguage = "en"\ndocuments = "clauses.jsonl"\n'
        'question = "\\nQuestion: {question}\\nAnswer:"\nanswer = " {answer}"\nfiller = ["\\nNothing else was agreed."]\n'
        '[[evidence]]\ntext = "\\n{text}"\n[haystack]\nsource = "rows"\nunits = ["\\n{text}"]\n'
    )
    ran = run(
        "needle",
        "-m",
        "oracle:recall:window=300",
        "--task",
        "mine.toml",
        "--lengths",
        "1024",
        "--trials",
        "5",
        "--out",
        "r",
    )
    assert ran.code == 0, ran.err
    found = {r["position"]: r["exact_rate"] for r in read_csv(Path("r/needle.csv"))}
    assert found["start"] == "0.0" and found["end"] == "1.0"


class Writer(Stub):
    """Writes the number it has seen last; where there is none, that it does not know."""

    def generate(self, trials):
        import re

        out = []
        for t in trials:
            digits = re.findall(rb"\d{5}", bytes(t.tokens.astype(np.uint8)))
            text = b" " + digits[-1] + b"." if digits else b" I do not know"
            nothing = np.zeros(0, np.float32)
            out.append(Scores(nothing, nothing.astype(bool), np.frombuffer(text, np.uint8).astype(np.int32), True))
        return out


def test_generated_text_is_kept_and_judged(tmp_path):
    probe = Needle((256,), tasks=("recall",), trials=6, mode="generate")
    found = frame(Writer(lambda t: 1.0), probe, out=str(tmp_path / "r"))
    assert set(found.contains_rate) == {1.0} and set(found.exact_rate) == {1.0} and found.above_absent.all()
    assert found.answer_nll.isna().all(), "no loss where nothing was scored"
    rows = read_csv(tmp_path / "r" / "trials.csv")
    assert {r["output"] for r in rows if r["arm"] == "absent"} == {" I do not know"}
    assert {r["normaliser"] for r in rows} == {"nfkc-casefold-digits-1"}
    assert all(int(r["n_prompt_tokens"]) + int(r["n_answer_tokens"]) == int(r["length"]) for r in rows)


def test_outputs_that_were_cut_off_are_no_misses(tmp_path):
    class Slow(Writer):
        def generate(self, trials):
            text = np.frombuffer(b" Let me think about where the number may", np.uint8).astype(np.int32)
            nothing = np.zeros(0, np.float32)
            own = super().generate(trials)
            cut = Scores(nothing, nothing.astype(bool), text[: trials[0].budget], False)
            return [cut if t.key is None and t.tokens[-1] % 2 else s for t, s in zip(trials, own, strict=True)]

    probe = Needle((256,), tasks=("recall",), trials=8, mode="generate", arms=("evidence",))
    found = frame(Slow(lambda t: 1.0), probe)
    assert (found.n_cut + found.n_trials == 8).all()
    assert set(found[found.n_trials > 0].contains_rate.dropna()) == {1.0}


def test_a_model_that_cannot_write_is_refused(run):
    ran = run("needle", "-m", "oracle:recall:window=300", "--mode", "generate", "--lengths", "256", "--task", "recall")
    assert ran.code == 2 and "cannot generate text; use --mode score" in ran.err


def test_templates():
    tokenizer = ByteTokenizer()
    with pytest.raises(Exception, match="has no chat template; use --template none"):
        frames.frame("chat", tokenizer, None, None)
    Path_ = Path(__file__).parent / "conftest.py"
    with pytest.raises(Exception, match="stands in it 0 times"):
        frames.frame(str(Path_), tokenizer, None, None)
    assert frames.default(tokenizer, "generate") == "none"


def test_a_template_of_ones_own_is_part_of_the_length(tmp_path, run):
    (tmp_path / "t.txt").write_text("<user>{prompt}<model>")
    ran = run(
        "needle",
        "-m",
        "oracle:recall:window=300",
        "--task",
        "recall",
        "--lengths",
        "256",
        "--trials",
        "5",
        "--template",
        tmp_path / "t.txt",
        "--out",
        "r",
    )
    assert ran.code == 0, ran.err
    model = json.loads(Path("r/manifest.json").read_text())["models"][0]
    prompt = model["first_prompt"]["recall"]
    assert prompt.startswith("<user>") and "<model>" in prompt and len(prompt.encode()) == 256


def test_positions_as_people_write_them():
    assert positions.parse("start,middle,end") == PLACES
    assert positions.parse("end, 25%,start,25%") == (("start", 0.0), ("25%", 0.25), ("end", 1.0))
    assert positions.parse("11")[1] == ("10%", 0.1) and len(positions.parse("11")) == 11
    assert positions.parse("3") == PLACES
    for wrong in ("", "begin", "120%", "-1%", "1", "1000", "start,,end"):
        with pytest.raises(Exception, match="for example start,middle,end"):
            positions.parse(wrong)


def test_wilson_intervals():
    """Newcombe 1998, Statistics in Medicine 17, table I, method 3 (score): 81/263, 15/148, 0/20, 1/29."""
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert stats.wilson(hits, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_the_sentence_names_where_and_how_far():
    def row(length, position, rate, above):
        return {
            "task": "t",
            "mode": "score",
            "length": length,
            "position": position,
            "exact_rate": rate,
            "above_absent": above,
            "status": "ok",
            "depth": {"start": 0, "middle": 0.5, "end": 1}[position],
        }

    rows = [row(256, p, 1.0, True) for p, _ in PLACES] + [
        row(512, "start", 0.1, False),
        row(512, "middle", 0.2, False),
        row(512, "end", 0.9, True),
    ]
    assert (
        needle_verdict.text(rows)
        == "t: retrieves from everywhere (exact 1.00) at 256; retrieves from end only (exact 0.90) at 512"
    )


@pytest.mark.parametrize("args, words", [
    (("--trials", "0"), "--trials 0"),
    (("--arms", "magic"), "--arms 'magic'"),
    (("--arms", "absent"), "evidence is what the other arms are compared with"),
    (("--task", "magic"), "there is none of that name"),
    (("--mode", "think"), "--mode think"),
    (("--budget", "0"), "--budget 0"),
    (("--positions", "begin"), "'begin' is no position"),
    (("--jsonl", "none.jsonl"), "cannot be read"),
    (("--template", "none.txt"), "cannot be read"),
])  # fmt: skip
def test_bad_options_are_refused(run, args, words):
    ran = run("needle", "-m", "oracle:recall:window=300", "--lengths", "256", *args)
    assert ran.code == 2 and words in ran.err, ran.err
