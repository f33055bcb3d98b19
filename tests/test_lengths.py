"""What --lengths accepts, and what it says of the rest."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthbench import lengths
from lengthbench.errors import UserError


@pytest.mark.parametrize("text, expected", [
    ("512..8192", (512, 1024, 2048, 4096, 8192)),
    ("8192..512", (512, 1024, 2048, 4096, 8192)),
    ("512..2048+512", (512, 1024, 1536, 2048)),
    ("4k", (4096,)),
    ("1k..4K", (1024, 2048, 4096)),
    ("512,512,1024", (512, 1024)),
    ("2048, 512 ,256..512", (256, 512, 2048)),
    ("300..300", (300,)),
    ("2..5+1", (2, 3, 4, 5)),
    ("0064", (64,)),
    ("2..8192+2", tuple(range(2, 8193, 2))),
])  # fmt: skip
def test_accepted(text, expected):
    assert lengths.parse(text) == expected


@pytest.mark.parametrize("text, message", [
    ("512-8192", "'512-8192' is not a number of tokens"),
    ("0", "0 is too short"),
    ("1", "1 is too short"),
    ("-5", "'-5' is not a number"),
    ("abc", "'abc' is not a number"),
    ("", "an empty entry"),
    ("512,,1024", "an empty entry"),
    ("512..3000", "doubling from 512 gives 2048 and 4096, not 3000; use 512..2048"),
    ("512..2000+512", "steps of 512 from 512 reach 1536, not 2000; use 512..1536+512"),
    ("512..8192+0", "512..8192+0: a step is 1 token or more"),
    ("1..8", "1 is too short, a window feeds 2 tokens or more"),
    ("2..1000000+1", "999,999 lengths, at most 4,096 at once"),
    ("2..100000000+2", "50,000,000 lengths, at most 4,096 at once"),
    ("2..6002+2,3..6003+2", "6,002 lengths, at most 4,096 at once"),
    ("64.." + "9" * 5000, "'64..9999999999999999999999999999999999999999999999999999999…': 9999"),
    ("64.." + "9" * 5000, "… is too long, the limit is 1,000,000,000,000"),
    ("1000000000001", "1000000000001 is too long"),
    ("9999999999k", "9999999999k is too long"),
    ("٣٢", "'٣٢' is not a number of tokens"),
    ("4\N{KELVIN SIGN}", "is not a number of tokens"),
    ("x" * 5000, f"'{'x' * 59}…' is not a number of tokens"),
    ("1e3", "'1e3' is not a number"),
    ("1.5k", "is not a number"),
])  # fmt: skip
def test_refused(text, message):
    with pytest.raises(UserError) as error:
        lengths.parse(text)
    assert message in str(error.value) and "--lengths" in str(error.value) and len(str(error.value)) < 300


def test_block():
    assert lengths.block((128, 512, 2048)) == 2048
    assert lengths.block((512, 768)) == 1536
    assert lengths.block((512, 1024, 1536, 2048)) == 6144
    assert lengths.block((7,)) == 7


def test_lengths_without_a_common_block_are_refused_with_the_nearest_good_list():
    with pytest.raises(UserError) as error:
        lengths.block((500, 1024))
    assert "the nearest list that works is 512,1024" in str(error.value)
    with pytest.raises(UserError) as error:
        lengths.block((100, 333, 1000))
    assert "100,250,1000" in str(error.value)
    with pytest.raises(UserError) as error:
        lengths.block(tuple(range(2, 4001)))
    assert "--lengths 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,2…: no block" in str(error.value)


@given(st.lists(st.integers(2, 5000), min_size=1, max_size=5))
def test_every_length_divides_the_block(values):
    chosen = tuple(sorted(set(values)))
    try:
        size = lengths.block(chosen)
    except UserError as error:
        better = tuple(int(n) for n in str(error).rsplit(" ", 1)[1].split(","))
        assert lengths.block(better) == max(chosen)
        return
    assert size <= 4 * max(chosen) and all(size % n == 0 for n in chosen) and size == math.lcm(*chosen)
