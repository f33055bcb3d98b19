"""Which targets profit from far context: words and their last place, splits and LongPPL, the largest gains."""

import math

import numpy as np
import pytest
from conftest import read_csv
from test_attribution import Stub

from lengthbench.corpora.text import Text, Texts, tokenize
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.probes import longrange, targets


def seen(text):
    texts = Texts("t", (Text("a", text),))
    return longrange.last_seen(texts.documents[0], tokenize(texts, ByteTokenizer())[0]).tolist()


def test_a_word_is_as_far_as_where_it_last_began():
    assert seen("the cat, The cat") == [0] * 9 + [9, 9, 9, 0, 9, 9, 9]


def test_words_of_several_bytes_count_tokens_not_characters():
    """é has two bytes: the second word begins 6 bytes after the first."""
    found = seen("été été")
    assert found[6:] == [0] + [6] * 4 or found[6:] == [6] * 5
    assert found[-1] == 6 and found[:5] == [0] * 5


def test_a_text_without_spaces_goes_by_four_characters():
    """Three bytes a character; those of the first three characters have no three before them."""
    text = "春はあけぼのやうやう白くなりゆく山ぎは" * 2
    half = len(text.encode()) // 2
    found = seen(text)
    assert not any(found[: half + 3 * 3])
    assert {d for d in found[half + 9 :] if d} == {half} and found[-1] == half


def test_far_means_outside_the_base_and_inside_the_window():
    back = np.array([0, 0, 0, 2, 5, 6, 7, 8])
    at = np.arange(1, 8)
    # First target 1, windows of 8: contexts 1..7.
    assert longrange.far(back, at, 1, 8, 4).tolist() == [False, False, False, False, False, False, False]
    back = np.array([0, 0, 0, 2, 4, 5, 6, 7])
    assert longrange.far(back, at, 1, 8, 4).tolist() == [False, False, False, False, True, True, True]
    # Windows of 4: what is further away than 4 is in another window.
    assert not longrange.far(back, at, 1, 4, 4).any()


def test_key_tokens_as_defined():
    cut, full = np.array([5.0, 4.0, 3.0, 9.0]), np.array([1.0, 1.9, 1.0, 2.5])
    assert longrange.key_tokens(cut, full, 2, 2).tolist() == [True, True, False, False]


def test_a_fall_within_groups_is_seen_and_torn_groups_are_not_counted():
    at = np.array([1, 2, 3, 4, 9, 10, 11, 12, 13, 14])
    gain = np.array([3.0, 2.0, 1.0, 0.0, 6.0, 4.0, 2.0, 0.0, 7.0, 7.0])
    assert targets.fall(at, gain, at - 1, 4) == (pytest.approx(3.0 + 6.0), 2)
    assert targets.fall(at, gain, at - 1, 1) == (0.0, 10)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A model that pays 3 nats, and 1 for what stood exactly 400 back within reach; one word stands far away."""
    from lengthbench.api import frame
    from lengthbench.probes.attribution import Attribution

    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(1)
    for name, letters in (("a", b"abcdefgh"), ("b", b"stuvwxyz")):
        piece = bytes(rng.choice(list(letters), 400).tolist())
        (folder / f"{name}.txt").write_bytes(piece * 30)

    def loss(trial):
        back = trial.tokens[np.maximum(trial.scored - 400, 0)]
        return np.where((trial.scored >= 400) & (back == trial.targets), 0.5, 3.0)

    frame(Stub(loss), Attribution((256, 1024), top=7), data=str(folder), out=str(folder / "run"))
    return folder / "run"


def test_longppl_is_over_the_key_tokens(measured):
    """Of 1024 contexts 625 reach 400 back: cut costs 3 there and full 0.5."""
    rows = {(r["split"], r["part"]): r for r in read_csv(measured / "splits.csv")}
    key = rows["key", "key"]
    assert float(key["share_of_targets"]) == 625 / 1024
    assert float(key["nats"]) == 2.5 and float(key["longppl"]) == math.exp(0.5)
    assert rows["key", "other"]["longppl"] == "" and float(rows["key", "other"]["nats"]) == 0
    assert sum(int(r["n_scored"]) for (split, _), r in rows.items() if split == "key") == 22 * 1024


def test_a_text_of_one_word_goes_by_grams(measured):
    """The text has no spaces, so four letters that stood 400 back are far, and only those profit."""
    rows = {(r["split"], r["part"]): r for r in read_csv(measured / "splits.csv")}
    assert float(rows["repeat", "far"]["nats"]) > 1.5 > 1.2 > float(rows["repeat", "other"]["nats"])


def test_the_largest_gains_come_with_their_text(measured):
    rows = read_csv(measured / "tokens.csv")
    assert [int(r["rank"]) for r in rows] == [1, 2, 3, 4, 5, 6, 7]
    text = (measured.parent / "a.txt").read_text()
    for row in rows:
        at = int(row["target"])
        assert float(row["gain"]) == 2.5 == float(row["swap_nll"]) - float(row["full_nll"])
        assert row["doc"] == "a.txt" and row["text"] == text[at]
        assert row["before"] == text[at - 48 : at] and row["after"] == text[at + 1 : at + 17]
