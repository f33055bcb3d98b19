"""The sentence is made from intervals, never from point values."""

import math

import pytest

from lengthbench.probes.losses import BlockSum, Cell
from lengthbench.probes.verdict import DILUTION, change, sentence

CELLS = [Cell("nonoverlapping", n, n) for n in (256, 8192)]


def sums(before, after, blocks=8, spread=0.5):
    """Blocks that differ a lot from one another and move together by after - before."""
    return [
        BlockSum(cell, 0, b, "ok", "", 1, 0, 100, 100, 100 * (nll + spread * (b % 3)), {}, 1.0, 1.0, 1)
        for cell, nll in zip(CELLS, (before, after), strict=True)
        for b in range(blocks)
    ]


@pytest.mark.parametrize("before, after, words", [
    (2.0, 1.95, "perplexity falls for x"),
    (2.0, 2.1, "perplexity rises for x"),
    (2.0, 2.8, "perplexity breaks for x"),
])  # fmt: skip
def test_small_paired_changes_are_seen_although_blocks_differ(before, after, words):
    found = change("x", 256, None, CELLS, sums(before, after), 0)
    assert words in sentence([found])
    low = math.exp(before + 0.5 * 7 / 8)  # eight blocks of offsets 0 .5 1 0 .5 1 0 .5
    assert found.ppl_before == pytest.approx(low)


def test_noise_is_no_change():
    noisy = sums(2.0, 2.0)
    moved = [-0.3, 0.2, 0.1, -0.1, 0.25, -0.2, 0.15, -0.1]
    noisy = [
        b
        if b.cell.length == 256
        else BlockSum(*[*list(vars(b).values())[:9], b.nll_sum + 100 * moved[b.block], {}, 1.0, 1.0, 1])
        for b in noisy
    ]
    assert "does not change measurably for x" in sentence([change("x", 256, None, CELLS, noisy, 0)])


def test_too_few_blocks_have_no_interval():
    text = sentence([change("x", 256, None, CELLS, sums(2.0, 1.9, blocks=3), 0)])
    assert "without an interval, for x" in text and DILUTION not in text


def test_a_fall_is_not_called_use_of_context():
    text = sentence([change("x", 256, None, CELLS, sums(2.0, 1.9), 0)])
    assert text.startswith("From 256 to 8192 tokens perplexity falls for x (") and text.endswith(DILUTION)
    assert "%" in text


def test_one_length_and_a_limit():
    only = [b for b in sums(2.0, 2.0) if b.cell.length == 256]
    text = sentence([change("x", 256, 256, CELLS, only, 0), change("y", 256, None, CELLS[:1], only, 0)])
    assert text == f"x has no positions beyond 256; y has perplexity {math.exp(2 + 0.5 * 7 / 8):.4g} at 256 tokens."


def test_a_name_keeps_its_letters_and_the_sentence_its_capital():
    only = [b for b in sums(2.0, 2.0) if b.cell.length == 256]
    alone = change("oracle:uniform", 256, None, CELLS[:1], only, 0)
    assert sentence([alone]).startswith("oracle:uniform has perplexity ")
    other = [Cell("nonoverlapping", 256, 256), Cell("nonoverlapping", 512, 512)]
    half = [BlockSum(other[1], *list(vars(b).values())[1:]) if b.cell.length == 8192 else b for b in sums(2.0, 2.0)]
    moved = [change("x", 256, None, CELLS, sums(2.0, 2.0), 0), change("y", 256, None, other, half, 0), alone]
    text = sentence(moved)
    assert text.startswith("From 256 to 8192 tokens perplexity ")
    assert "; from 256 to 512 tokens perplexity " in text and "; oracle:uniform has perplexity " in text
