"""Each scheme against numbers from the papers and the authors' code (golden/README.md), and against plain sums."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from lengthbench import registry, rotary
from lengthbench.errors import UserError
from lengthbench.models.attention import attend
from lengthbench.scheme import Shape
from lengthbench.schemes import alibi, sinusoidal, t5, xpos

GOLDEN = json.loads((Path(__file__).parent / "golden" / "schemes.json").read_text())
SHAPE = Shape(width=32, heads=4, train_length=128)


def fill(shape: tuple[int, ...], amp: float, a: float, b: float) -> torch.Tensor:
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    return (amp * torch.sin(a * n + b)).reshape(shape)


@pytest.mark.parametrize("heads", GOLDEN["alibi_slopes"])
def test_alibi_slopes(heads):
    assert alibi.slopes(int(heads)) == pytest.approx(GOLDEN["alibi_slopes"][heads], abs=1e-11)


def test_alibi_slopes_of_twelve_heads_as_published():
    """The list in the published rule for head counts that are not a power of two."""
    expected = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    expected += [0.70710678, 0.35355339, 0.1767767, 0.08838835]
    assert alibi.slopes(12) == pytest.approx(expected, abs=1e-8)


def test_t5_buckets():
    golden = GOLDEN["t5_bucket_unidirectional"][0]
    assert t5.buckets(301).tolist() == golden["values"]
    far = t5.buckets(8193)
    assert [int(far[d]) for d in (0, 15, 16, 20, 32, 64, 100, 127, 512, 8192)] == [
        0,
        15,
        16,
        17,
        21,
        26,
        30,
        31,
        31,
        31,
    ]
    assert set(far[113:].tolist()) == {31} and int(far[112]) == 30


def test_t5_bias_follows_its_configuration():
    scheme = registry.load("t5:buckets=8,max_distance=16", SHAPE)
    table = scheme.distance_table(64)
    assert table is not None and table.shape == (4, 64)
    assert (table[:, 16:] == table[:, 15:16]).all() and (table[:, 3] != table[:, 4]).all()


def test_t5_warns_of_untrained_buckets():
    assert "untrained" in str(registry.load("t5", Shape(32, 4, 64)).warning())
    assert registry.load("t5", SHAPE).warning() is None


@pytest.mark.parametrize("layout, name", [("interleaved", "vaswani_interleaved"), ("fairseq", "fairseq_concat")])
def test_sinusoid(layout, name):
    golden = GOLDEN["sinusoid"][name]
    pos = torch.tensor(golden["params"]["positions"])
    found = sinusoidal.LAYOUTS[layout](pos, golden["params"]["dim"])
    assert np.allclose(found, golden["values"], atol=1e-11, rtol=0)


def test_sinusoid_of_odd_width_ends_in_zero():
    assert (sinusoidal.fairseq(torch.arange(5), 7)[:, -1] == 0).all()


def test_rope_frequencies():
    golden = next(g for g in GOLDEN["rope_inv_freq"] if g["params"]["type"] == "default")
    found = rotary.frequencies(golden["params"]["dim"], golden["params"]["theta"])
    assert np.allclose(found, golden["values"], rtol=1e-11, atol=0)


@pytest.mark.parametrize(
    "golden", GOLDEN["rotated_vectors"], ids=lambda g: f"{g['params']['layout']}-{g['params']['position']}"
)
def test_rotated_vectors(golden):
    params = golden["params"]
    x = torch.tensor(params["x"], dtype=torch.float64)
    freqs = rotary.frequencies(params.get("rotary_dim", len(x)), params["theta"])
    cos, sin = rotary.angles(torch.tensor([params["position"]]), freqs)
    assert np.allclose(rotary.turn(x[None], cos, sin, params["layout"])[0], golden["values"], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["kerple_log", "kerple_power"])
def test_kerple(name):
    p = GOLDEN[name]["params"]
    scheme = registry.load(name, Shape(2 * 8, 2, 64)).double()
    scheme.r1.data, scheme.r2.data = (torch.tensor(p[key], dtype=torch.float64) for key in ("r1", "r2"))
    table = scheme.distance_table(4097).detach()
    assert np.allclose(table[:, p["distance"]], GOLDEN[name]["values"], rtol=1e-11, atol=0)


@pytest.mark.parametrize("name, most", [("kerple_log", None), ("kerple_power", 2.0)])
def test_kerple_stays_in_its_bounds_and_learns_there(name, most):
    """What an optimiser step puts outside is set to the bound itself, where the gradient is not cut off."""
    scheme = registry.load(name, SHAPE)
    scheme.r1.data[:], scheme.r2.data[:] = torch.tensor([-1.0, 0.0, 1.0, 5.0]), torch.tensor([5.0, -1.0, 0.0, 1.0])
    scheme.distance_table(16).sum().backward()
    assert scheme.r1.tolist() == pytest.approx([0.01, 0.01, 1, 5])
    assert scheme.r2.tolist() == pytest.approx([most or 5, 0.01, 0.01, 1])
    assert all((r.grad < 0).all() and r.grad.isfinite().all() for r in (scheme.r1, scheme.r2))


def test_kerple_starts_in_the_authors_ranges():
    for name, top1, top2 in (("kerple_log", 2, 1), ("kerple_power", 1, 2)):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            scheme = registry.load(name, Shape(4000 * 2, 4000, 64))
        for r, top in ((scheme.r1.detach(), top1), (scheme.r2.detach(), top2)):
            assert float(r.min()) >= 0 and 0.99 * top < float(r.max()) <= top
            assert float(r.mean()) == pytest.approx(top / 2, rel=0.05)


@pytest.mark.parametrize("golden", GOLDEN["sandwich"], ids=lambda g: f"{g['params']['H']}-{g['params']['d_bar']}-{g['params']['first_exponent_index']}")  # fmt: skip
def test_sandwich(golden):
    p = golden["params"]
    scheme = registry.load(
        f"sandwich:width={p['d_bar']},first={p['first_exponent_index']}", Shape(8 * p["H"], p["H"], 64)
    )
    assert np.allclose(scheme.distance_table(4097)[:, p["distance"]], golden["values"], rtol=0, atol=1e-9)


def test_zeta_of_xpos():
    golden = GOLDEN["xpos"]["zeta"]
    assert np.allclose(xpos.zeta(golden["params"]["dim"]), golden["values"], rtol=1e-11, atol=0)


@pytest.mark.parametrize("golden", GOLDEN["xpos"]["decay"], ids=lambda g: str(g["params"]["distance"]))
@pytest.mark.parametrize("start", [0, 1000])
def test_decay_of_xpos(golden, start):
    """What a pair of unit length adds to a logit with itself turned by the same angle: zeta^(d/B) cos(d f)."""
    d = golden["params"]["distance"]
    scheme = registry.load("xpos", Shape(64, 1, 256))
    x = torch.eye(64, dtype=torch.float64)[:32, None]  # (pair, 1, D), one channel of each
    q, k = (scheme.rotate(x, x, torch.tensor([at]))[n] for n, at in ((0, start + d), (1, start)))
    expected = torch.tensor(golden["values"], dtype=torch.float64) * torch.cos(d * scheme.freqs)
    assert torch.allclose((q * k).sum(-1)[:, 0], expected, rtol=1e-9, atol=1e-12)


def test_xpos_is_finite_up_to_its_limit_in_float32():
    scheme = registry.load("xpos", Shape(64, 1, 256))
    assert scheme.hard_limit == 28328  # 512 * 100 ln 2 / -ln(0.4 / 1.4)
    x = torch.full((1, 1, 2, 64), 1e-3)
    pos = torch.tensor([scheme.hard_limit - 17, scheme.hard_limit - 1])
    (q, k), (q0, k0) = scheme.rotate(x, x, pos), scheme.rotate(x, x, pos - pos[0])
    assert torch.allclose(q[0, 0, 1] @ k[0, 0, 0], q0[0, 0, 1] @ k0[0, 0, 0], rtol=1e-4)


@pytest.mark.parametrize("output, spec", [("none", "none"), ("alibi", "alibi"), ("t5_relative", "t5"), ("rope_half", "rope"),
                                          ("rope_partial_half", "rope:partial=0.5"), ("kerple_log", "kerple_log"),
                                          ("kerple_power", "kerple_power"), ("sandwich_dbar16", "sandwich:width=16"),
                                          ("xpos_interleaved_base512", "xpos")])  # fmt: skip
def test_one_attention_layer_end_to_end(output, spec):
    p = GOLDEN["end_to_end"]["params"]
    heads, length, width = p["H"], p["L"], p["D"]
    size = (1, heads, length, width)
    q, k, v = fill(size, 1.5, 0.7, 0.1), fill(size, 1.5, 1.3, 0.4), fill(size, 1.0, 0.37, 0.9)
    scheme = registry.load(spec, Shape(heads * width, heads, 256)).double()
    if spec == "t5":
        scheme.table.data = fill((32, heads), 1.0, 0.9, 0.3)
    if spec.startswith("kerple"):
        scheme.r1.data, scheme.r2.data = (torch.tensor(p[key], dtype=torch.float64) for key in ("r1", "r2"))
    if "interleaved" in output:  # pairs (2n, 2n+1) brought to where (n, n+D/2) are: a logit does not see the order
        q, k = (torch.cat([x[..., 0::2], x[..., 1::2]], -1) for x in (q, k))
    q, k = scheme.rotate(q, k, torch.arange(length))
    found = attend(q, k, v, scheme.distance_table(length))[0]
    assert np.allclose(found.detach(), GOLDEN["end_to_end"]["outputs"][output], atol=1e-9, rtol=0)
    single = attend(q.float(), k.float(), v.float(), scheme.distance_table(length))[0]
    assert np.allclose(single.detach(), GOLDEN["end_to_end"]["outputs"][output], atol=5e-6, rtol=0)


def per_pair(q, k, v, table):
    """Attention written out: one softmax a query, one logit a pair, float64."""
    heads, length, width = q.shape
    out = np.zeros_like(q)
    for h in range(heads):
        for i in range(length):
            logits = np.array([q[h, i] @ k[h, j] / math.sqrt(width) + table[h, i - j] for j in range(i + 1)])
            weights = np.exp(logits - logits.max())
            out[h, i] = weights @ v[h, : i + 1] / weights.sum()
    return out


@pytest.mark.parametrize("length, chunk", [(1, 512), (7, 3), (33, 8), (40, 40), (41, 512)])
def test_strided_mask_equals_a_softmax_per_pair(length, chunk):
    generator = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(2, 3, length, 8, dtype=torch.float64, generator=generator) for _ in range(3))
    table = torch.randn(3, length, dtype=torch.float64, generator=generator)
    found = attend(q, k, v, table, chunk).numpy()
    for b in range(2):
        expected = per_pair(q[b].numpy(), k[b].numpy(), v[b].numpy(), table.numpy())
        assert np.allclose(found[b], expected, atol=1e-12, rtol=0)


def test_strided_mask_passes_gradients_to_the_table():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 12, 8, dtype=torch.float64, generator=generator) for _ in range(3))
    table = torch.randn(2, 12, dtype=torch.float64, generator=generator, requires_grad=True)
    distance = torch.arange(12)[:, None] - torch.arange(12)
    bias = table[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)
    dense = ((q @ k.transpose(-1, -2)) / math.sqrt(8) + bias).softmax(-1) @ v
    weight = torch.randn(dense.shape, dtype=torch.float64, generator=generator)
    (expected,) = torch.autograd.grad((dense * weight).sum(), table)
    (found,) = torch.autograd.grad((attend(q, k, v, table, chunk=5) * weight).sum(), table)
    assert torch.allclose(found, expected, atol=1e-12)


def test_flex_route_has_the_same_bias_and_mask():
    from torch.nn.attention.flex_attention import flex_attention

    from lengthbench.models.attention import _causal, _score_mod

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 16, 16, generator=generator) for _ in range(3))
    table = torch.randn(2, 16, generator=generator)
    found = flex_attention(q, k, v, score_mod=_score_mod(table), block_mask=_causal(16, torch.device("cpu")))
    assert torch.allclose(found, attend(q, k, v, table), atol=1e-5)


@pytest.mark.parametrize("spec", ["rope", "sinusoidal", "sinusoidal:layout=fairseq"])
def test_angles_stay_exact_far_out(spec):
    """At position 131071, whatever the model's dtype: 257 is not 256, and tables equal float64 ones."""
    pos = torch.tensor([256, 257, 8191, 131071])
    scheme = registry.load(spec, Shape(64, 1, 256))
    if spec == "rope":
        cos, sin = rotary.angles(pos, scheme.freqs)
        f = 10000.0 ** (-np.arange(0, 64, 2) / 64)
        exact = np.concatenate([np.cos(pos.numpy()[:, None] * f), np.sin(pos.numpy()[:, None] * f)], 1)
        found = torch.cat([cos, sin], 1).float()
    else:
        exact = sinusoidal.LAYOUTS[scheme.params["layout"]](pos, 64).numpy()
        found = scheme.embed(torch.zeros(1, 4, 64, dtype=torch.bfloat16), pos)[0].float()
    tolerance = 1e-6 if spec == "rope" else 4e-3
    assert np.abs(found.numpy() - exact).max() < tolerance
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("spec, message", [
    ("alibbi", "no scheme called 'alibbi'; there are: alibi, dynamic, kerple_log, kerple_power, learned, linear, "),
    ("rope:tetha=5", "rope has no parameter 'tetha'; it takes: theta, partial"),
    ("rope:theta=big", "theta=big is not a number"),
    ("rope:theta", "is not key=value"),
    ("rope:partial=0.1", "rotates 0 of 8 channels"),
    ("alibi:x=1", "it takes: none"),
    ("learned:policy=wrap", "error, clamp, interpolate"),
    ("sinusoidal:layout=foo", "interleaved, fairseq"),
    ("nowhere.py", "no such file"),
    ("sandwich:width=7", "width must be even"),
    ("sandwich:first=2", "first 0 or 1"),
    ("xpos:decay=-1", "it needs a decay above 0, not -1"),
])  # fmt: skip
def test_what_cannot_be_loaded_is_said(spec, message):
    with pytest.raises(UserError) as error:
        registry.load(spec, SHAPE)
    assert message in str(error.value)


def test_learned_policies():
    pos = torch.arange(256)
    x = torch.zeros(1, 256, 32)
    clamp = registry.load("learned:policy=clamp", SHAPE)
    out = clamp.embed(x, pos)[0]
    assert torch.equal(out[127:], out[127:128].expand(129, 32)) and clamp.hard_limit is None
    stretch = registry.load("learned:policy=interpolate", SHAPE)
    out = stretch.embed(x[:, :255], torch.arange(255))[0]
    assert torch.allclose(out[::2], stretch.table * math.sqrt(32), atol=1e-6) and not stretch.prefix_stable
    assert registry.load("learned", SHAPE).hard_limit == 128


def test_a_scheme_of_ones_own(tmp_path):
    file = tmp_path / "window.py"
    file.write_text(
        "import torch\nfrom lengthbench.scheme import Scheme\n"
        "class Window(Scheme):\n"
        "    def __init__(self, shape, *, size: int = 4):\n        super().__init__(shape)\n        self.size = size\n"
        "    def distance_table(self, length):\n"
        "        far = torch.arange(length) >= self.size\n"
        "        return torch.zeros(self.shape.heads, length).masked_fill(far, -torch.inf)\n"
    )
    scheme = registry.load(f"{file}:size=3", SHAPE)
    assert scheme.name == "window" and scheme.params == {"size": 3}
    q = torch.randn(1, 4, 9, 8)
    v = torch.randn(1, 4, 9, 8)
    out = attend(q, q, v, scheme.distance_table(9))
    v[:, :, :6] = 0  # what is 3 or more tokens back is not seen by the last query
    assert torch.allclose(attend(q, q, v, scheme.distance_table(9))[:, :, 8], out[:, :, 8], atol=1e-6)
