"""Which blocks are scored: worked out by hand, and the rules for all sizes."""

from hypothesis import given
from hypothesis import strategies as st

from lengthbench.probes.blocks import Block, select


def test_by_hand():
    chosen = select([3000, 1024, 1025, 5], (512, 1024), None)
    assert chosen.size == 1024 and chosen.lengths == (512, 1024) and chosen.too_short == ()
    assert chosen.blocks == (Block(0, 0, 1, 1024), Block(0, 1, 1025, 2048), Block(2, 0, 1, 1024))
    # document of 1024 tokens has 1023 targets, one too few; 951 of the first, 1023 and 4 are left over
    assert (chosen.n_left_out, chosen.n_dropped, chosen.n_available) == (2, 951 + 1023 + 4, 3)


def test_max_tokens_cuts_blocks_round_robin_and_spreads_them():
    chosen = select([1001, 301, 101], (100,), 699)
    assert [(b.document, b.number) for b in chosen.blocks] == [(0, 1), (0, 5), (0, 8), (1, 0), (1, 2), (2, 0)]
    assert len(select([1001], (100,), 1).blocks) == 1  # never less than one block


def test_a_length_no_document_fills_does_not_count():
    chosen = select([700, 600], (512, 1024), None)
    assert (chosen.lengths, chosen.too_short, chosen.size) == ((512,), (1024,), 512)
    assert select([5], (512,), None).blocks == ()


def test_a_block_of_several_lengths_must_fit_too():
    """512 and 768 make blocks of 1536; in 1000 tokens only 512 remains."""
    assert select([1000], (512, 768), None).lengths == (512,)


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=6),
    st.integers(2, 40),
    st.one_of(st.none(), st.integers(1, 2000)),
)
def test_blocks_never_overlap_and_never_exceed(sizes, length, most):
    chosen = select(sizes, (length, 2 * length), most)
    seen = set()
    for block in chosen.blocks:
        targets = {(block.document, t) for t in range(block.first, block.last + 1)}
        assert len(targets) == chosen.size and not targets & seen and block.last < sizes[block.document]
        seen |= targets
    if most is not None and chosen.blocks:
        assert len(seen) <= max(most, chosen.size)
    assert chosen.n_dropped + chosen.n_available * chosen.size == sum(max(0, n - 1) for n in sizes)
