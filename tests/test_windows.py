"""Which tokens are fed and which are scored: the pictures of the docstrings, and the rules for all sizes."""

from hypothesis import given
from hypothesis import strategies as st

from lengthbench import windows
from lengthbench.windows import Window


def shown(cut):
    return [(list(range(w.begin, w.end)), list(range(w.first, w.end + 1))) for w in cut]


def test_nonoverlapping_as_drawn():
    assert shown(windows.nonoverlapping(1, 8, 4)) == [
        ([0, 1, 2, 3], [1, 2, 3, 4]),
        ([4, 5, 6, 7], [5, 6, 7, 8]),
    ]
    assert shown(windows.nonoverlapping(1, 8, 4, start=True)) == [
        ([1, 2, 3], [1, 2, 3, 4]),
        ([5, 6, 7], [5, 6, 7, 8]),
    ]


def test_sliding_as_drawn():
    assert shown(windows.sliding(1, 8, 4, 2)) == [
        ([0, 1], [1, 2]),
        ([0, 1, 2, 3], [3, 4]),
        ([2, 3, 4, 5], [5, 6]),
        ([4, 5, 6, 7], [7, 8]),
    ]


def test_hf_as_drawn():
    assert shown(windows.hf(9, 4, 4)) == [([0, 1, 2], [1, 2, 3]), ([4, 5, 6], [5, 6, 7])]


def test_hf_equals_the_loop_of_the_guide():
    """The loop of transformers' guide, with labels -100 for what is not scored and the shift by one inside."""
    for n, length, stride in [(1025, 512, 512), (1000, 256, 100), (37, 8, 3), (9, 16, 4), (8, 8, 8)]:
        expected, previous = [], 0
        for begin in range(0, n, stride):
            end = min(begin + length, n)
            wanted = end - previous
            labels = list(range(begin, end))
            labels[:-wanted] = [None] * (len(labels) - wanted)
            expected += [t for t in labels[1:] if t is not None]
            previous = end
            if end == n:
                break
        assert [t for w in windows.hf(n, length, stride) for t in range(w.first, w.end + 1)] == expected


sizes = st.integers(2, 40)


@given(sizes, st.integers(1, 5), st.data(), st.booleans())
def test_every_target_once_with_the_context_that_is_promised(length, blocks, data, start):
    stride = data.draw(st.integers(1, length))
    size = length * blocks
    for number in range(3):
        first, last = number * size + 1, (number + 1) * size
        cut = list(windows.sliding(first, last, length, stride, start))
        assert [t for w in cut for t in range(w.first, w.end + 1)] == list(range(first, last + 1))
        for w in cut:
            assert w.end - w.begin + start <= length
            for target, context in zip(range(w.first, w.end + 1), w.contexts(), strict=True):
                assert context == target - w.begin
                assert context <= length - start and (context >= length - stride + 1 - start or w.begin == 0)
            low = length - stride + 1 - start
            assert windows.clipped(w, stride, start) == sum(c < low for c in w.contexts())


@given(sizes, st.integers(1, 5), st.integers(0, 3), st.booleans())
def test_a_stride_of_the_length_is_nonoverlapping(length, blocks, number, start):
    first, last = number * length * blocks + 1, (number + 1) * length * blocks
    one = list(windows.nonoverlapping(first, last, length, start))
    assert one == list(windows.sliding(first, last, length, length, start))
    assert all(list(w.contexts()) == list(range(1 - start, length + 1 - start)) for w in one)
    assert all(w.begin >= first - 1 for w in one)


@given(st.integers(2, 60), sizes, st.data())
def test_hf_scores_no_target_twice(n, length, data):
    stride = data.draw(st.integers(1, length))
    scored = [t for w in windows.hf(n, length, stride) for t in range(w.first, w.end + 1)]
    assert scored == sorted(set(scored)) and all(1 <= t < n for t in scored)
    lost = set(range(1, n)) - set(scored)
    assert lost == (set(range(length, n, length)) if stride == length else set())


def test_window_counts():
    assert Window(4, 8, 7, 4).n_scored == 2
