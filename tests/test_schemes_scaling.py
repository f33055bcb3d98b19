"""Rotary scalings against the authors' numbers (golden/README.md), transformers' functions and plain RoPE."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from lengthbench import registry, rotary
from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models import catalog
from lengthbench.models.attention import attend
from lengthbench.scheme import Shape
from lengthbench.trials import Trial

GOLDEN = json.loads((Path(__file__).parent / "golden" / "schemes.json").read_text())
SHAPE = Shape(width=32, heads=4, train_length=128)
WORDS = {"low_freq_factor": "low", "high_freq_factor": "high", "p": "partial"}
"""What golden files call some parameters -> what `--scheme` calls them."""


def numbers(path: Path, values: list[float]) -> Path:
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    "golden",
    GOLDEN["rope_inv_freq"],
    ids=lambda g: "-".join(str(v) for v in g["params"].values() if not isinstance(v, list)),
)
def test_frequencies(golden, tmp_path):
    p = dict(golden["params"])
    name = {"default": "rope", "p-rope": "p_rope"}.get(p["type"], p["type"])
    width, length = p.pop("dim"), p.pop("current_length", 4096)
    if name == "longrope":
        length = p["original"] + (p.pop("which") == "long")
        file = numbers(tmp_path / "factors.json", p.pop("ext_factors"))
        other = numbers(tmp_path / "other.json", [7.0] * (width // 2))
        p |= {"short": other, "long": file} if length > p["original"] else {"short": file, "long": other}
    del p["type"]
    values = ",".join(f"{WORDS.get(key, key)}={value}" for key, value in p.items())
    scheme = registry.load(f"{name}:{values}", Shape(width * 2, 2, 100))
    assert scheme.frequencies(length).dtype == torch.float64
    assert np.allclose(scheme.frequencies(length), golden["values"], rtol=1e-11, atol=0)


@pytest.mark.parametrize("golden", GOLDEN["attention_factor"]["yarn"], ids=lambda g: str(g["params"]["factor"]))
def test_attention_scale_of_yarn(golden):
    scheme = registry.load(f"yarn:factor={golden['params']['factor']}", SHAPE)
    assert scheme.attention_scale == pytest.approx(golden["values"], rel=1e-11)


@pytest.mark.parametrize("golden", GOLDEN["attention_factor"]["yarn_mscale"])
def test_attention_scale_of_yarn_with_mscale(golden):
    assert rotary.yarn_scale(**golden["params"]) == pytest.approx(golden["values"], rel=1e-11)


@pytest.mark.parametrize("golden", GOLDEN["attention_factor"]["longrope"], ids=lambda g: str(g["params"]["factor"]))
def test_attention_scale_of_longrope(golden, tmp_path):
    file = numbers(tmp_path / "ones.json", [1.0] * 4)
    values = ",".join(f"{key}={value}" for key, value in golden["params"].items())
    scheme = registry.load(f"longrope:{values},short={file},long={file}", SHAPE)
    assert scheme.attention_scale == pytest.approx(golden["values"], rel=1e-11)


def test_one_attention_layer_with_yarn():
    """The attention factor is in q and in k: logits grow by its square."""
    p = GOLDEN["end_to_end"]["params"]
    size = (1, p["H"], p["L"], p["D"])

    def fill(amp: float, a: float, b: float) -> torch.Tensor:
        n = torch.arange(math.prod(size), dtype=torch.float64)
        return (amp * torch.sin(a * n + b)).reshape(size)

    q, k, v = fill(1.5, 0.7, 0.1), fill(1.5, 1.3, 0.4), fill(1.0, 0.37, 0.9)
    scheme = registry.load(f"yarn:factor=4,original={p['yarn_orig']}", Shape(p["H"] * p["D"], p["H"], 256))
    q, k = scheme.rotate(q, k, torch.arange(p["L"]))
    assert np.allclose(attend(q, k, v, None)[0], GOLDEN["end_to_end"]["outputs"]["yarn_s4"], atol=1e-9, rtol=0)
    single = attend(q.float(), k.float(), v.float(), None)[0]
    assert np.allclose(single, GOLDEN["end_to_end"]["outputs"]["yarn_s4"], atol=5e-6, rtol=0)


@pytest.mark.parametrize("width", [16, 80, 128])
@pytest.mark.parametrize("theta", [1e4, 5e5])
@pytest.mark.parametrize(
    ("spec", "entry"),
    [
        ("linear:factor=3", {"rope_type": "linear", "factor": 3.0}),
        ("dynamic:factor=3,original=512", {"rope_type": "dynamic", "factor": 3.0}),
        ("yarn:factor=3,original=512", {"rope_type": "yarn", "factor": 3.0}),
        ("yarn:factor=16,original=512,beta_fast=20,beta_slow=2,truncate=false",
         {"rope_type": "yarn", "factor": 16.0, "beta_fast": 20, "beta_slow": 2, "truncate": False}),
        ("llama3:factor=3,original=512,low=2,high=5",
         {"rope_type": "llama3", "factor": 3.0, "low_freq_factor": 2.0, "high_freq_factor": 5.0}),
        ("p_rope:partial=0.3", {"rope_type": "proportional", "partial_rotary_factor": 0.3}),
    ],
)  # fmt: skip
def test_frequencies_are_those_of_transformers(width, theta, spec, entry):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(hidden_size=4 * width, num_attention_heads=4, max_position_embeddings=512)
    config.rope_parameters = entry | {"rope_theta": theta, "original_max_position_embeddings": 512}
    expected, scale = ROPE_INIT_FUNCTIONS[entry["rope_type"]](config, "cpu", seq_len=1500)
    scheme = registry.load(f"{spec},theta={theta}", Shape(4 * width, 4, 64))
    assert np.allclose(scheme.frequencies(1500), expected, rtol=2e-6, atol=0)
    assert scheme.attention_scale == pytest.approx(scale)


def test_ntk_keeps_the_highest_frequency_and_divides_the_lowest():
    plain = registry.load("rope", SHAPE).frequencies(1)
    found = registry.load("ntk:factor=4", SHAPE).frequencies(1)
    assert found[0] == 1 and float(found[-1]) == pytest.approx(float(plain[-1]) / 4, rel=1e-12)


@pytest.mark.parametrize("partial", [1.0, 0.5])
def test_linear_turns_by_a_fraction_of_the_position(partial):
    q = torch.randn(1, 4, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scaled, plain = (registry.load(f"{s},partial={partial}", SHAPE) for s in ("linear:factor=4", "rope:theta=10000"))
    found = scaled.rotate(q, q, torch.arange(0, 20, 4))[0]
    assert torch.allclose(found, plain.rotate(q, q, torch.arange(5))[0], atol=1e-12)
    untouched = 8 - int(8 * partial)
    assert torch.equal(found[..., 8 - untouched :], q[..., 8 - untouched :])


@pytest.mark.parametrize(
    ("spec", "params"),
    [
        ("linear:factor=2", {"theta": 10000.0, "partial": 1.0, "factor": 2.0}),
        ("dynamic:factor=2", {"theta": 10000.0, "partial": 1.0, "factor": 2.0, "original": 128}),
        ("dynamic:factor=2,original=64", {"theta": 10000.0, "partial": 1.0, "factor": 2.0, "original": 64}),
        ("llama3", {"theta": 10000.0, "partial": 1.0, "factor": 8.0, "original": 128, "low": 1.0, "high": 4.0}),
        ("yarn:factor=8,theta=5e5", {"theta": 5e5, "partial": 1.0, "factor": 8.0, "original": 128, "beta_fast": 32.0,
                                     "beta_slow": 1.0, "truncate": True, "attention_scale": 1.2079441541679836}),
    ],
)  # fmt: skip
def test_parameters_are_recorded_as_resolved(spec, params):
    assert registry.load(spec, SHAPE).params == params


def test_longrope_records_the_numbers_not_the_files(tmp_path):
    short = numbers(tmp_path / "short", [1.0, 1.5, 2.0, 3.0])
    (tmp_path / "long").write_text("1 2,\n4\t8\n")
    scheme = registry.load(f"longrope:factor=4,short={short},long={tmp_path / 'long'}", SHAPE)
    assert scheme.params["short"] == [1.0, 1.5, 2.0, 3.0] and scheme.params["long"] == [1.0, 2.0, 4.0, 8.0]
    assert (scheme.params["original"], scheme.params["factor"], scheme.prefix_stable) == (128, 4.0, False)


@pytest.mark.parametrize(("spec", "message"), [
    ("linear", "scheme linear: it needs a factor above 0"),
    ("ntk:factor=-2", "scheme ntk: it needs a factor above 0, not -2.0"),
    ("ntk:factor=2,partial=0.25", "2 channels rotate; it needs 4 at least"),
    ("dynamic:factor=2,original=-1", "scheme dynamic: it needs an original above 0, not -1"),
    ("dynamic:factor=2,original=1.5", "original=1.5 is not a whole number"),
    ("yarn:factor=2,beta_fast=1", "beta_fast above beta_slow"),
    ("yarn:factor=2,theta=1", "theta must be above 1"),
    ("yarn:factor=2,theta=-1", "theta must be positive"),
    ("yarn:facotr=2", "no parameter 'facotr'; it takes: theta, partial, factor, original, beta_fast, beta_slow"),
    ("llama3:low=4", "high must be above low"),
    ("p_rope", "partial=0.0; it needs the share of pairs that turn"),
    ("p_rope:partial=2", "partial=2.0; it needs the share of pairs that turn"),
    ("longrope:factor=2", "it needs short, a file with a list of 4 numbers"),
    ("longrope:factor=2,short=none.json", "short=none.json cannot be read as a list of numbers"),
    ("longrope:factor=2,short=words", "short=words cannot be read as a list of numbers"),
    ("longrope:factor=2,short=three", "short=three has 3 numbers; 4 above 0 are needed"),
    ("longrope:factor=2,short=negative", "short=negative has 4 numbers; 4 above 0 are needed"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(spec, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words").write_text("one two three four")
    numbers(Path("three"), [1.0, 2.0, 3.0])
    numbers(Path("negative"), [1.0, 2.0, 3.0, -4.0])
    with pytest.raises(UserError) as error:
        registry.load(spec, SHAPE)
    assert message in str(error.value)


def test_a_rotary_scheme_of_ones_own_needs_only_its_frequencies(tmp_path):
    file = tmp_path / "halved.py"
    file.write_text(
        "from lengthbench.rotary import Rotary, frequencies\n"
        "class Halved(Rotary):\n"
        "    def __init__(self, shape, *, theta: float = 100.0):\n"
        "        super().__init__(shape, theta)\n"
        "        self.need(theta=theta - 50)\n"
        "        self.freqs = frequencies(self.rotated, theta) / 2\n"
    )
    own, linear = registry.load(str(file), SHAPE), registry.load("linear:factor=2,theta=100", SHAPE)
    assert torch.equal(own.frequencies(1), linear.frequencies(1))
    with pytest.raises(UserError, match="scheme halved: it needs a theta above 0, not -40"):
        registry.load(f"{file}:theta=10", SHAPE)


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    from lengthbench.corpora import source

    novel = source.read("novels").documents[0].text.encode()[:4097]
    return np.frombuffer(novel, np.uint8).astype(np.int32)


@pytest.fixture(scope="module")
def losses(text):
    """`losses(spec, 512, 4096, ...)`: of windows of these lengths, in this order, by one loaded reference:rope."""

    def score(spec: str, *lengths: int) -> list[np.ndarray]:
        (card,) = catalog.describe(["reference:rope"], [spec], LoadOptions(dtype="float32", device="cpu"))
        model = card.load()
        return [model.score([Trial(text[: n + 1], np.arange(1, n + 1))])[0].nll for n in lengths]

    return score


@pytest.mark.parametrize("original", [2048, 256])
def test_dynamic_does_not_remember_longer_windows(losses, original):
    spec = f"dynamic:factor=2,original={original}"
    first, long, again = losses(spec, 512, 4096, 512)
    (alone,) = losses(spec, 512)
    assert np.array_equal(first, again) and np.array_equal(first, alone)
    assert np.abs(long[:512] - first).max() > 0.01


@pytest.mark.parametrize(("n", "growth"), [(512, 1), (513, 2 * 513 / 512 - 1), (1024, 3)])
def test_dynamic_is_rope_with_the_base_of_its_own_length(losses, n, growth):
    (card,) = catalog.describe(["reference:rope"], [], LoadOptions())
    r = card.facts["config"]["width"] // card.facts["config"]["heads"]
    (found,) = losses("dynamic:factor=2,original=512", n)
    (expected,) = losses(f"rope:theta={10000 * growth ** (r / (r - 2))!r}", n)
    assert np.abs(found - expected).max() < 1e-5


def test_longrope_switches_just_above_the_original_length(losses, tmp_path):
    short, long = numbers(tmp_path / "short", [1.0] * 8), numbers(tmp_path / "long", [4.0] * 8)
    (card,) = catalog.describe(["reference:rope"], [], LoadOptions())
    assert card.facts["config"]["width"] // card.facts["config"]["heads"] == 16
    # s = 1: no attention factor, so the short set is plain RoPE and the long one is position interpolation by 4.
    spec = f"longrope:factor=1,original=512,short={short},long={long}"
    at, above, again, alone = [*losses(spec, 512, 513, 512), *losses(spec, 512)]
    (plain,), (interpolated,) = losses("rope", 512), losses("linear:factor=4", 513)
    assert np.array_equal(at, again) and np.array_equal(at, alone)
    assert np.abs(at - plain).max() < 1e-5 and np.abs(above - interpolated).max() < 1e-5
    assert np.abs(plain - interpolated[:512]).max() > 0.01


def test_the_plan_gives_each_length_its_own_pass_where_the_window_decides():
    for spec, stable in (("dynamic:factor=2", False), ("yarn:factor=2", True)):
        (card,) = catalog.describe(["reference:rope"], [spec], LoadOptions())
        assert card.prefix_stable == stable and card.scheme_params["original"] == card.train_length


def test_an_override_keeps_the_base_a_model_was_trained_with():
    from lengthbench.models.reference import inherited

    own = "rope:theta=40000,partial=0.5"
    assert inherited("yarn:factor=4", own) == "yarn:theta=40000,partial=0.5,factor=4"
    assert inherited("linear:factor=2,theta=10000", own) == "linear:theta=10000,partial=0.5,factor=2"
    assert inherited("p_rope:partial=0.75", own) == "p_rope:theta=40000,partial=0.75"
    assert inherited("alibi", own) == "alibi" and inherited("rope", "alibi") == "rope"
