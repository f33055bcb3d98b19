"""Rotary scaling: the keys of a configuration are honoured or refused, and no result depends on what ran before."""

import math

import numpy as np
import pytest
import tiny_models
import torch

from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface.describe import describe
from lengthbench.trials import Trial

FLOAT32 = LoadOptions(dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny_models.build("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def card(llama, tmp_path):
    """`card(rope_scaling={...}, ...)`: the card of a Llama with a config.json changed so."""

    def make(**changes):
        folder = tmp_path / "changed"
        folder.mkdir(exist_ok=True)
        for file in llama.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        return describe(str(tiny_models.edit(folder, **changes)), FLOAT32)

    return make


def losses(model, n: int, seed: int = 3) -> np.ndarray:
    """Losses of a window that feeds `n` tokens; a shorter one is a prefix of a longer one."""
    tokens = np.random.default_rng(seed).integers(0, tiny_models.VOCABULARY, 300).astype(np.int32)
    return model.score([Trial(tokens[: n + 1], np.arange(1, n + 1))])[0].nll


YARN = {"factor": 8.0, "original_max_position_embeddings": 2048}


def test_the_factor_of_yarn_counts_not_the_ratio_of_the_lengths(card):
    found = card(rope_parameters=None, rope_scaling={"rope_type": "yarn", **YARN}, max_position_embeddings=4096)
    assert found.scheme == "yarn" and found.train_length == 2048
    assert (found.scheme_params["factor"], found.scheme_params["original"]) == (8.0, 2048)
    assert found.scheme_params["attention_scale"] == pytest.approx(1.2079442, abs=1e-7)
    rotary = found.load().network.model.rotary_emb
    assert rotary.attention_scaling == pytest.approx(1.2079442, abs=1e-7)


def test_both_spellings_of_the_type_give_equal_losses(card):
    old = card(rope_parameters=None, rope_scaling={"type": "yarn", **YARN}, max_position_embeddings=4096)
    first = losses(old.load(), 60)
    new = card(rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, **YARN}, rope_scaling=None)
    assert old.scheme_params == new.scheme_params
    assert np.array_equal(first, losses(new.load(), 60))


@pytest.mark.parametrize(
    ("scaling", "said"),
    [
        ({"rope_tpye": "yarn", **YARN}, r"'rope_tpye'.*did you mean 'rope_type'"),
        ({"rope_tpye": "yarn", "rope_type": "default"}, r"'rope_tpye'.*did you mean 'rope_type'"),
        ({"rope_type": "yarn", "original_max_position_embeddings": 2048}, "lacks the key 'factor'"),
        ({"rope_type": "linear", "facotr": 2.0}, r"'facotr'.*did you mean 'factor'"),
        ({"rope_type": "foo", "factor": 8.0}, "type 'foo', which is none of: default, linear"),
        ({"factor": 8.0}, "lacks the key 'rope_type'; it has: factor"),
        ({"rope_type": "linear", "factor": "8"}, "'factor' is '8', it must be a number"),
        ({"rope_type": "linear", "factor": -1}, "'factor' is -1, it must be a number"),
        ({"rope_type": "linear", "type": "dynamic", "factor": 2.0}, "rope_type 'linear' and type 'dynamic'"),
        ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
         "lacks the key 'original_max_position_embeddings'"),
        ({"rope_type": "longrope", "long_factor": [1.0] * 4, "original_max_position_embeddings": 32},
         "lacks the key 'short_factor'"),
        ({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 32}, r"starts at .* \(64\)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
def test_a_misspelled_missing_or_unknown_key_is_named(card, scaling, said, field):
    other = {"rope_parameters": None} if field == "rope_scaling" else {}
    with pytest.raises(UserError, match=said):
        card(**other, **{field: scaling})


@pytest.mark.parametrize(
    ("scaling", "scheme", "length", "source"),
    [
        ({"rope_type": "linear", "factor": 4.0}, "linear", 64, "claimed by config.max_position_embeddings"),
        ({"rope_type": "dynamic", "factor": 4.0}, "dynamic", 64, "config.max_position_embeddings"),
        ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}, "llama3", 32, "config.original_max_position_embeddings"),
        ({"type": "yarn", "factor": 4.0}, "yarn", 64, "config.max_position_embeddings"),
    ],
)  # fmt: skip
def test_training_length_and_how_it_is_known(card, scaling, scheme, length, source):
    found = card(rope_parameters=None, rope_scaling=scaling)
    assert (found.scheme, found.train_length) == (scheme, length)
    assert found.train_length_source.startswith(source)
    assert found.prefix_stable == (scheme != "dynamic")


NESTED = {
    "full_attention": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}


@pytest.mark.parametrize(("name", "changes"), [("dynamic", {}), ("gemma3", {"rope_parameters": NESTED})])
def test_dynamic_ntk_does_not_remember_longer_windows(tmp_path, name, changes):
    folder = tiny_models.build(name, tmp_path, **changes)
    alone = describe(str(folder), FLOAT32).load()
    assert not alone.card.prefix_stable
    expected = {n: losses(alone, n) for n in (100, 48)}
    model = describe(str(folder), FLOAT32).load()
    for n in (48, 100, 200, 100, 48):
        found = losses(model, n)
        if n in expected:
            assert np.array_equal(found, expected[n]), n
    assert np.abs(losses(model, 200)[:40] - expected[100][:40]).max() > 1e-3


@pytest.mark.parametrize(("n", "growth"), [(48, 1.0), (64, 1.0), (100, 2 * 100 / 64 - 1)])
def test_dynamic_ntk_turns_by_its_definition(tmp_path, n, growth):
    model = describe(str(tiny_models.build("dynamic", tmp_path)), FLOAT32).load()
    losses(model, 200)
    losses(model, n)
    theta = 10000 * growth ** (8 / 6)
    expected = [theta ** (-2 * k / 8) for k in range(4)]
    assert model.network.model.rotary_emb.inv_freq.tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [48, 100])
def test_dynamic_ntk_is_what_a_fresh_transformers_model_gives(tmp_path, n):
    from transformers import AutoModelForCausalLM

    folder = tiny_models.build("dynamic", tmp_path)
    found = losses(describe(str(folder), FLOAT32).load(), n)
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, tiny_models.VOCABULARY, 300))[: n + 1]
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(folder).eval()(tokens[None, :-1]).logits[0]
    expected = torch.nn.functional.cross_entropy(logits, tokens[1:], reduction="none").numpy()
    assert np.abs(found - expected).max() < 1e-4


def test_longrope_switches_above_the_original_length_and_back(tmp_path):
    card = describe(str(tiny_models.build("longrope", tmp_path)), FLOAT32)
    assert (card.scheme, card.train_length, card.prefix_stable) == ("longrope", 64, False)
    # LongRoPE: sqrt(1 + ln(128/64) / ln 64)
    assert card.scheme_params["attention_scale"] == pytest.approx(math.sqrt(1 + math.log(2) / math.log(64)))
    model = card.load()
    rotary = model.network.model.rotary_emb
    plain = [10000 ** (-2 * k / 8) for k in range(4)]
    seen = {}
    for n, name in ((64, "short_factor"), (65, "long_factor"), (200, "long_factor"), (64, "short_factor")):
        seen.setdefault(n, losses(model, n))
        expected = [f / factor for f, factor in zip(plain, tiny_models.FACTORS[name], strict=True)]
        assert rotary.inv_freq.tolist() == pytest.approx(expected, rel=1e-6), n
        assert np.array_equal(losses(model, n), seen[n])
    assert np.abs(seen[65][:40] - seen[64][:40]).max() > 1e-3


def test_layers_that_differ_are_told(tmp_path):
    gemma = describe(str(tiny_models.build("gemma3", tmp_path / "gemma3")), FLOAT32)
    assert gemma.facts["layer_types"] == {"sliding_attention": 1, "full_attention": 1}
    assert gemma.scheme_params["sliding_attention"]["theta"] == 10000
    assert gemma.scheme_params["full_attention"]["theta"] == 1000000
    assert gemma.scheme_params["window"] == 16
    smol = describe(str(tiny_models.build("smollm3", tmp_path / "smollm3")), FLOAT32)
    assert smol.facts["layers_without_positions"] == [1]
    neox = describe(str(tiny_models.build("gpt_neox", tmp_path / "neox")), FLOAT32)
    assert neox.scheme_params["partial"] == 0.25


def test_another_base_and_scaling_can_be_put_in(llama):
    def freqs(scheme: str) -> list[float]:
        card = describe(str(llama), LoadOptions(dtype="float32", device="cpu", scheme=scheme))
        assert card.scheme == scheme.partition(":")[0]
        return card.load().network.model.rotary_emb.inv_freq.tolist()

    plain = [10000 ** (-2 * k / 8) for k in range(4)]
    assert freqs("rope:theta=500000") == pytest.approx([500000 ** (-2 * k / 8) for k in range(4)], rel=1e-6)
    assert freqs("linear:factor=4") == pytest.approx([f / 4 for f in plain], rel=1e-6)
    ntk = freqs("ntk:factor=4")
    assert ntk[0] == 1 and ntk[-1] == pytest.approx(plain[-1] / 4, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "scheme", "said"),
    [
        ("gpt2", "rope", "has the position scheme learned, which --scheme rope cannot replace"),
        ("llama", "alibi", "has the position scheme rope, which --scheme alibi cannot replace"),
        ("llama", "rope:base=3", "rope has no parameter 'base'; it takes: theta"),
        ("llama", "linear", "needs a factor"),
        ("llama", "linear:factor=no", "factor=no is not a number"),
    ],
)
def test_a_scheme_that_cannot_be_put_in_is_refused(name, scheme, said, llama, tmp_path):
    folder = llama if name == "llama" else tiny_models.build(name, tmp_path)
    with pytest.raises(UserError, match=said):
        describe(str(folder), LoadOptions(scheme=scheme))
