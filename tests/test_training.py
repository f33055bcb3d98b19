"""Training: what a resumed run, a saved folder and a recall exercise must be."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from lengthbench.models.bytes import ByteTokenizer
from lengthbench.training import recall
from lengthbench.training.batches import Batches
from lengthbench.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = ["--layers", 1, "--width", 16, "--heads", 2, "--train-length", 32, "--batch", 4, "--data", "book.txt"]
BOOK = " ".join(f"Night {n} was dark and stormy." for n in range(300))


@pytest.fixture
def book(tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    return tmp_path


def test_a_trained_folder_is_a_model(run, book):
    ran = run("train", "--scheme", "alibi,rope:theta=500,partial=0.5", "--tokens", "12k", *SMALL, "--out", "t")
    assert ran.code == 0, ran.err
    for name in ("alibi", "rope-theta-500-partial-0.5-" + _hash("rope:theta=500,partial=0.5")):
        folder = book / "t" / name
        record = json.loads((folder / "training.json").read_text())
        assert record["train_updates"] == 94 and record["train_tokens"] == 94 * 4 * 32
        assert record["train_seconds"] > 0 and record["train_peak_memory_bytes"] > 10**7
        assert record["data"]["n_bytes"] == len(BOOK) and len(record["data"]["sha256"]) == 64
        assert (folder / "loss.png").stat().st_size > 1000 and not (folder / "checkpoint.safetensors").exists()
        assert record["curve"][-1]["loss"] < record["curve"][0]["loss"]
        ran = run("ppl", "--model", folder, "--data", "book.txt", "--lengths", "32,64", "--out", f"r-{name}", "--json")
        rows = json.loads(ran.out)["ppl"]
        assert [r["train_length"] for r in rows] == [32, 32] and rows[0]["ppl"] < 256
    ran = run("train", "--scheme", "alibi", "--tokens", "12k", *SMALL, "--out", "t")
    assert ran.code == 2 and "holds a trained model already" in ran.err


def _hash(name):
    import hashlib

    return hashlib.sha256(name.encode()).hexdigest()[:8]


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(run, book):
    """352 updates, killed at the first checkpoint, after 100."""
    args = [str(a) for a in ("train", "--scheme", "t5", "--tokens", "45k", *SMALL, "--out")]
    assert run(*args, "whole").code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "lengthbench", *args, "killed"], cwd=book, stderr=subprocess.DEVNULL
    )
    checkpoint = book / "killed/t5/checkpoint.safetensors"
    deadline = time.monotonic() + 60
    while not checkpoint.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not (book / "killed/t5/model.safetensors").exists()
    ran = run(*args, "killed")
    assert ran.code == 2 and "unfinished training; go on with --resume" in ran.err
    assert run(*args, "killed", "--resume").code == 0
    whole, killed = (load_file(book / out / "t5/model.safetensors") for out in ("whole", "killed"))
    assert whole.keys() == killed.keys() and all(np.array_equal(whole[k], killed[k]) for k in whole)
    curves = [json.loads((book / out / "t5/training.json").read_text())["curve"] for out in ("whole", "killed")]
    assert len(curves[0]) == 352 and curves[0] == curves[1]


def test_a_training_that_is_refused_leaves_no_folder(run, book):
    args = ["train", "--scheme", "none,alibi", "--tokens", "1k", *SMALL, "--data", "nowhere.txt", "--out", "t"]
    assert "'nowhere.txt': no such file" in run(*args).err
    assert not list((book / "t").iterdir())


@pytest.mark.parametrize("args, message", [
    (["--tokens", "lots"], "--tokens 'lots': not a number of tokens, for example 500k or 8M"),
    (["--scheme", "alibbi"], "no scheme called 'alibbi'"),
    (["--heads", 5], "a head gets 3.2 channels"),
    (["--layers", 0], "--layers 0: must be 1 or more"),
    (["--recall", 2], "--recall 2.0: a share between 0 and 1"),
    (["--learning-rate", "nan"], "--learning-rate nan: must be above 0"),
    (["--learning-rate", "inf"], "--learning-rate inf: must be above 0"),
    (["--seed", -1], "--seed -1: must be 0 or more"),
    (["--save-dtype", "int8"], "--save-dtype int8: it is one of"),
    (["--tokenizer", "nowhere.json"], "--tokenizer nowhere.json: no such file"),
    (["--train-length", 20000], "the longest training document has"),
])  # fmt: skip
def test_bad_input(run, book, args, message):
    ran = run("train", "--scheme", "none", "--tokens", "1k", *SMALL, "--out", "t", *args)
    assert ran.code == 2 and message in ran.err and len(ran.err.splitlines()) == 1


LIMITED = (
    "import resource, sys\nlimit = int(sys.argv.pop(1))\nresource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
    "from lengthbench.cli.app import app\napp()"
)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
@pytest.mark.parametrize("tokens, file", [("1k", "model"), ("45k", "checkpoint")])
def test_no_room_for_the_weights_is_one_line_and_leaves_nothing(book, tokens, file):
    """Files up to 70,000 bytes; 256 x 64 embeddings and as much for the head are more."""
    args = ["train", "--scheme", "none", "--tokens", tokens, *SMALL, "--width", "64", "--out", "t", "-q"]
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, "70000", *map(str, args)], cwd=book, capture_output=True, text=True
    )
    assert ran.returncode == 2 and ran.stdout == ""
    assert ran.stderr.startswith(f"lengthbench: cannot write t/none/{file}.safetensors: File too large")
    assert ran.stderr.endswith("; make room and go on with --resume\n") and ran.stderr.count("\n") == 1
    assert not list((book / "t").iterdir())


def test_weights_that_do_not_fit_leave_the_checkpoint_to_go_on_from(run, book, monkeypatch):
    from safetensors import SafetensorError

    from lengthbench.training import save

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    args = ["train", "--scheme", "none", "--tokens", "15k", *SMALL, "--out", "t", "-q"]
    with monkeypatch.context() as patched:
        patched.setattr(save, "save_file", full)
        ran = run(*args)
    said = "cannot write t/none/model.safetensors: No space left on device (os error 28); make room and go on with --resume"
    assert (ran.code, ran.err) == (2, f"lengthbench: {said}\n")
    assert [p.name for p in (book / "t/none").iterdir()] == ["checkpoint.safetensors"]
    assert run(*args, "--resume").code == 0
    names = {p.name for p in (book / "t/none").iterdir()}
    assert names == {"config.json", "loss.png", "model.safetensors", "training.json"}


def test_a_checkpoint_of_another_recipe_is_refused(book, run):
    from lengthbench.errors import UserError
    from lengthbench.models.decoder import Decoder
    from lengthbench.training import checkpoint, loop

    recipe = Recipe("none", 32, layers=1, width=16, heads=2)
    model = Decoder(recipe.decoder(256))
    optimizer = loop._optimizer(model, recipe)
    model.tokens.weight.sum().backward()
    for p in model.parameters():
        p.grad = p.grad if p.grad is not None else p.detach() * 0
    optimizer.step()
    checkpoint.save(book / "c", recipe, model, optimizer, loop.Progress(3))
    assert checkpoint.load(book / "c", recipe, model, optimizer) == loop.Progress(3)
    with pytest.raises(UserError, match="another recipe"):
        checkpoint.load(book / "c", Recipe("none", 32, layers=1, width=16, heads=2, seed=1), model, optimizer)


def test_a_recall_exercise_states_a_key_and_asks_for_it():
    """Every weighted answer is the stated key, right behind its question; distances grow with progress."""
    prose = np.frombuffer(b"the sea was calm and the wind was fair all that day and night, " * 9, np.uint8)
    longest = []
    for progress in (0.0, 1.0):
        gaps = []
        for seed in range(60):
            tokens, weights = recall.build(np.random.default_rng(seed), prose, ByteTokenizer(), 256, progress)
            assert len(tokens) == len(weights) == 257
            text = bytes(tokens.astype(np.uint8)).decode()
            statement, question = next(w for w in recall.WORDINGS if w[0] in text)
            at = text.index(statement) + len(statement)
            key = text[at : at + 5]
            assert key.isdigit() and (weights[at : at + 5] == recall.PROSE_WEIGHT).all()
            answers = np.flatnonzero(weights == recall.ANSWER_WEIGHT)
            for run_ in np.split(answers, np.flatnonzero(np.diff(answers) > 1) + 1):
                if len(run_) == 5:
                    assert text[run_[0] : run_[0] + 5] == key and text[: run_[0]].endswith(question)
            gaps += list(np.diff(answers)[np.diff(answers) > 1])
        longest.append(max(gaps))
    assert longest[0] < 60 < longest[1]


def test_batches_are_a_function_of_seed_and_update():
    documents = [np.arange(5000, dtype=np.int32) % 256, np.arange(40, dtype=np.int32)]
    recipe = Recipe("none", 32, batch=4, recall=0.0)
    one, two = Batches(documents, ByteTokenizer(), recipe), Batches(documents, ByteTokenizer(), recipe)
    assert one[7][0].equal(two[7][0]) and not one[7][0].equal(one[8][0])
    other = Batches(documents, ByteTokenizer(), Recipe("none", 32, batch=4, recall=0.0, seed=1))
    assert not one[7][0].equal(other[7][0])
    assert (one[7][1] == 1).all() and not one[7][2].any()
    windows = one[7][0].numpy()
    assert ((np.diff(windows) % 256) == 1).all()  # runs of the counting text, never across documents


def test_learning_rate():
    from lengthbench.training.loop import learning_rate

    recipe = Recipe("none", tokens=1100 * 4096)
    assert learning_rate(recipe, 0) == pytest.approx(3e-5) and learning_rate(recipe, 99) == pytest.approx(3e-3)
    assert learning_rate(recipe, 600) == pytest.approx(3e-3 * 0.55) and learning_rate(recipe, 1100) == pytest.approx(
        3e-4
    )


def test_a_tokenizer_of_ones_own(run, book):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    own.train_from_iterator(
        [BOOK], trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    own.save(str(book / "own.json"))
    ran = run("train", "--scheme", "none", "--tokens", "2k", *SMALL, "--out", "t", "--tokenizer", "own.json")
    assert ran.code == 0, ran.err
    ran = run("ppl", "--model", "t/none", "--data", "book.txt", "--lengths", "32", "--out", "r", "--json")
    (row,) = json.loads(ran.out)["ppl"]
    assert row["n_bytes"] > 2 * row["n_scored"]
