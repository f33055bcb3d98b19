"""The reference decoder: everything but the scheme held fixed, causal, and scored without full logits."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lengthbench import registry
from lengthbench.models.decoder import Decoder, DecoderConfig
from lengthbench.models.loss import Head, NoHead, score_rows
from lengthbench.models.torch_scoring import score
from lengthbench.trials import Trial

GIVEN = {"linear": "factor=2", "ntk": "factor=2", "dynamic": "factor=2", "yarn": "factor=2", "p_rope": "partial=0.5"}
"""What the schemes that mean nothing without it are given; longrope needs files, its test makes them."""
SCHEMES = [f"{n}:{GIVEN[n]}" if n in GIVEN else n for n in registry.names() if n != "longrope"]


def decoder(scheme, **shape):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Decoder(DecoderConfig(scheme, 64, layers=2, width=32, heads=4, **shape)).eval()


def tokens(n, seed=0):
    return torch.randint(0, 256, (1, n), generator=torch.Generator().manual_seed(seed))


def losses(model, x):
    """(T - 1,) by the plain way: all logits, cross-entropy."""
    with torch.inference_mode():
        return F.cross_entropy(model(x[:, :-1]).flatten(0, 1).float(), x[:, 1:].flatten(), reduction="none")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scoring_equals_the_plain_way(scheme):
    model, x = decoder(scheme), tokens(65)
    trial = Trial(x[0].numpy(), np.arange(1, 65))
    (found,) = score([trial], model.hidden, Head(model.head.detach()))
    assert np.abs(found.nll - losses(model, x).numpy()).max() < 1e-5
    some = Trial(x[0].numpy(), np.array([3, 40, 64]))
    (part,) = score([some], model.hidden, Head(model.head.detach()))
    assert np.abs(part.nll - found.nll[[2, 39, 63]]).max() < 1e-6


@pytest.mark.parametrize("scheme", SCHEMES)
def test_later_tokens_change_no_earlier_loss(scheme):
    model, x = decoder(scheme), tokens(65)
    changed = x.clone()
    changed[:, -10:] = (changed[:, -10:] + 1) % 256
    assert torch.equal(losses(model, x)[:54], losses(model, changed)[:54])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_batch_of_one_equals_a_batch_of_many(scheme):
    model = decoder(scheme)
    many = [Trial(tokens(33, seed)[0].numpy(), np.arange(1, 33)) for seed in range(5)]
    head = Head(model.head.detach())
    for one, all_ in zip(
        [score([t], model.hidden, head)[0] for t in many], score(many, model.hidden, head), strict=True
    ):
        assert np.abs(one.nll - all_.nll).max() < 1e-5


@pytest.mark.parametrize("scheme", SCHEMES)
def test_prefixes_of_a_long_window_are_the_short_window(scheme):
    """Within the training length for all; beyond it the one that turns by the window's length says that it is not so."""
    model, x = decoder(scheme), tokens(129)
    assert torch.allclose(losses(model, x[:, :65])[:31], losses(model, x[:, :32]), atol=1e-5)
    if model.scheme.hard_limit is None:
        same = torch.allclose(losses(model, x)[:31], losses(model, x[:, :32]), atol=1e-5)
        assert same == model.scheme.prefix_stable


def test_the_scheme_is_used():
    """Order matters to all but NoPE's first layer: swapping two early tokens moves the last loss."""
    x = tokens(33)
    swapped = x.clone()
    swapped[0, [2, 9]] = swapped[0, [9, 2]]
    for scheme in SCHEMES:
        model = decoder(scheme)
        assert (losses(model, x)[-1] - losses(model, swapped)[-1]).abs() > 1e-6, scheme
    biased, plain = decoder("alibi"), decoder("alibi")
    plain.scheme.slopes = [0.0] * 4
    assert not torch.allclose(losses(biased, x), losses(plain, x), atol=1e-3)
    assert torch.allclose(losses(plain, x), losses(decoder("none"), x), atol=1e-5)


@pytest.mark.parametrize("scheme", ["rope", "sinusoidal", "alibi"])
def test_bfloat16_does_not_drift_with_position(scheme):
    """On a shipped model and text: the mean gap to float32 stays below 0.05 nat in every stretch of the window."""
    from lengthbench.corpora import source
    from lengthbench.model import LoadOptions
    from lengthbench.models import catalog

    text = source.read("novels").documents[0].text.encode()[:1025]
    trial = Trial(np.frombuffer(text, np.uint8).astype(np.int32), np.arange(1, 1025))
    nll = []
    for dtype in ("float32", "bfloat16"):
        (card,) = catalog.describe([f"reference:{scheme}"], [], LoadOptions(dtype=dtype))
        nll.append(card.load().score([trial])[0].nll)
    gaps = [(nll[1] - nll[0])[a:b].mean() for a, b in [(0, 64), (64, 128), (128, 256), (256, 512), (512, 1024)]]
    assert max(map(abs, gaps)) < 0.05, gaps


def test_everything_else_is_the_same_for_all():
    first = dict(decoder("none").named_parameters())
    for scheme in SCHEMES:
        own = dict(decoder(scheme).named_parameters())
        assert first.keys() == {n for n in own if not n.startswith("scheme.")}
        assert all(torch.equal(first[n], own[n]) for n in first), scheme


def test_token_embeddings_have_unit_variance():
    model = decoder("none", vocabulary=4096)
    assert float((model.tokens.weight * math.sqrt(32)).var()) == pytest.approx(1, abs=0.02)


def test_float64_layer_by_layer_equals_attention_written_out():
    """ALiBi in float64, every logit by itself; the rest of the decoder as in the formula of its docstring."""
    model, x = decoder("alibi").double(), tokens(12)
    slopes = [0.25, 0.0625, 0.015625, 0.00390625]
    with torch.inference_mode():
        h = model.tokens(x)[0] * math.sqrt(32)
        for layer in model.layers:
            q, k, v = layer.qkv(layer.norm_attention(h)).view(12, 3, 4, 8).unbind(1)
            mixed = torch.zeros(12, 4, 8, dtype=torch.float64)
            for head in range(4):
                for i in range(12):
                    logits = torch.stack(
                        [q[i, head] @ k[j, head] / math.sqrt(8) - slopes[head] * (i - j) for j in range(i + 1)]
                    )
                    mixed[i, head] = logits.softmax(0) @ v[: i + 1, head]
            h = h + layer.out(mixed.reshape(12, 32))
            h = h + layer.down(torch.relu(layer.up(layer.norm_mlp(h))))
        expected = F.linear(model.norm(h), model.tokens.weight)
        assert torch.allclose(model(x)[0], expected, atol=1e-12)


@pytest.mark.parametrize("vocabulary", [5, 2048, 5000])
def test_tiles_equal_all_logits(vocabulary):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1500, 16, generator=generator)
    weight, bias = torch.randn(vocabulary, 16, generator=generator), torch.randn(vocabulary, generator=generator)
    targets = torch.randint(0, vocabulary, (1500,), generator=generator)
    for head in (Head(weight), Head(weight, bias), Head(weight, bias, 0.25), Head(weight, softcap=3.0)):
        logits = F.linear(hidden, weight, head.bias) * head.scale
        if head.softcap:
            logits = head.softcap * torch.tanh(logits / head.softcap)
        expected = F.cross_entropy(logits, targets, reduction="none")
        nll, first = score_rows(hidden, targets, head)
        assert torch.allclose(nll, expected, atol=1e-4)
        assert torch.equal(first, logits.argmax(1) == targets)
        assert torch.allclose(score_rows(logits, targets, NoHead(vocabulary, logits.device))[0], expected, atol=1e-4)


def test_tiles_in_float64_are_exact_and_know_ties():
    """Two tiles; the largest logit stands twice, once in each."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 3000, dtype=torch.float64, generator=generator)
    logits[:, [7, 2900]] = 9.0
    targets = torch.tensor([7, 2900, 8])
    nll, first = score_rows(logits, targets, NoHead(3000, logits.device))
    assert nll.dtype == torch.float64
    assert torch.allclose(nll, F.cross_entropy(logits, targets, reduction="none"), atol=1e-12, rtol=0)
    assert first.tolist() == [True, True, False]


def test_tiles_without_and_beyond_number():
    """-inf throughout a tile adds nothing; NaN, +inf or an impossible target give no finite loss."""
    logits = torch.zeros(5, 5000)
    logits[:, 2048:4096] = -torch.inf
    logits[1, 4999], logits[2, 0] = torch.nan, torch.inf
    targets = torch.tensor([1, 1, 1, 3000, 4999])
    nll, first = score_rows(logits, targets, NoHead(5000, logits.device))
    assert nll[[0, 4]].tolist() == pytest.approx([math.log(2952)] * 2)
    assert not nll[1:4].isfinite().any()
    assert first.tolist() == [True, False, False, False, True]
    assert logits[0, 0] == 0 and logits[0, 2048] == -torch.inf


def test_a_bfloat16_head_gives_float32_losses_of_its_own_logits():
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(40, 16, generator=generator).bfloat16()
    weight, bias = (torch.randn(*size, generator=generator).bfloat16() for size in ((3000, 16), (3000,)))
    weight = torch.nn.Parameter(weight)
    targets = torch.randint(0, 3000, (40,), generator=generator)
    logits = F.linear(hidden, weight, bias).float()
    nll, first = score_rows(hidden, targets, Head(weight, bias))
    assert nll.dtype == torch.float32
    # Beside this, bfloat16 sums would be off by 1e-2; the product itself may round differently for a tile.
    assert torch.allclose(nll, F.cross_entropy(logits, targets, reduction="none"), atol=2e-3)
    assert first.dtype == torch.bool and not first.all()


@pytest.mark.parametrize("length, batch", [(64, 1), (67, 2), (100, 1)])
def test_keys_that_weigh_nothing_are_not_visited(length, batch):
    """Steep, shallow, windowed and level heads, out of order; float64 against attention written out."""
    from lengthbench.models.attention import _reach, attend

    generator = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(batch, 5, length, 8, dtype=torch.float64, generator=generator) for _ in range(3))
    distance = torch.arange(length, dtype=torch.float64)
    table = -torch.tensor([0.01, 40.0, 0.0, 5.0, 2.5])[:, None] * distance
    table[2, 11:] = -torch.inf
    gap = torch.arange(length)[:, None] - torch.arange(length)
    bias = table[:, gap.clamp(min=0)].masked_fill(gap < 0, -torch.inf)
    expected = (q @ k.transpose(2, 3) / math.sqrt(8) + bias).softmax(-1) @ v
    with torch.inference_mode():
        reach = _reach(q, k, table).tolist()
        assert reach[0] == length and reach[2] == 11 and reach[1] < reach[3] < reach[4] < length
        assert torch.allclose(attend(q, k, v, table, chunk=8), expected, atol=1e-12, rtol=0)
        # A key out of reach is not read at all: what is not a number there does not spread.
        v[:, 1, 0] = torch.nan
        assert attend(q, k, v, table, chunk=8)[:, 1, 32:].isfinite().all()


def test_memory_of_the_losses_does_not_grow_with_rows_times_vocabulary():
    """8192 rows x 128,256 words are 3.9 GiB of logits; here the peak grows by less than 0.05 of that."""
    from lengthbench.memory import PeakMemory, resident

    hidden, weight = torch.zeros(8192, 8), torch.zeros(128_256, 8)
    targets = torch.arange(8192)
    before = resident()
    with PeakMemory() as memory:
        nll, _ = score_rows(hidden, targets, Head(weight))
    assert torch.allclose(nll, torch.full((8192,), math.log(128_256)), atol=1e-4)
    assert memory.bytes - before < 0.05 * 8192 * 128_256 * 4


@pytest.mark.slow
def test_attention_memory_grows_linearly():
    """ALiBi at 16384 tokens: one bias matrix of 4 heads would be 4 GiB."""
    from lengthbench.memory import PeakMemory, resident

    model = decoder("alibi")
    growth = []
    for n in (4096, 16384):
        x = tokens(n)
        before = resident()
        with torch.inference_mode(), PeakMemory() as memory:
            model.hidden(x)
        growth.append(memory.bytes - before)
    assert growth[1] < 0.3 * 2**30 and growth[1] < 6 * max(growth[0], 20 * 2**20)
