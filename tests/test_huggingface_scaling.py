"""Rotary scaling: the keys of a configuration are honoured or refused, and no result depends on what ran before."""

import json
import math

import numpy as np
import pytest
import tiny_models
import torch

from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface import override
from lengthbench.models.huggingface.describe import describe
from lengthbench.models.huggingface.detect import detect
from lengthbench.models.huggingface.stateless import Frequencies
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


def put(folder, scheme: str):
    """The card of the checkpoint with another scheme in it."""
    return describe(str(folder), LoadOptions(dtype="float32", device="cpu", scheme=scheme))


def by_transformers(folder, entry: dict, n: int) -> np.ndarray:
    """Losses of `losses(model, n)` by a fresh transformers model with `entry` in its rope parameters."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    own = config.rope_parameters
    nested = all(isinstance(v, dict) for v in own.values())
    config.rope_parameters = {k: v | entry for k, v in own.items()} if nested else own | entry
    network = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32).eval()
    tokens = torch.from_numpy(np.random.default_rng(3).integers(0, tiny_models.VOCABULARY, 300))[: n + 1]
    with torch.no_grad():
        logits = network(tokens[None, :-1]).logits[0]
    return torch.nn.functional.cross_entropy(logits, tokens[1:], reduction="none").numpy()


LISTS = {key: tiny_models.FACTORS[key] for key in ("short_factor", "long_factor")}
PUT_IN = {
    "rope:theta=500000": {"rope_theta": 500000.0},
    "linear:factor=4": {"rope_type": "linear", "factor": 4.0},
    "ntk:factor=4": {"rope_theta": 10000 * 4 ** (8 / 6)},
    "dynamic:factor=4": {"rope_type": "dynamic", "factor": 4.0},
    "yarn:factor=4": {"rope_type": "yarn", "factor": 4.0},
    "yarn:factor=8,original=2048,beta_fast=4": {"rope_type": "yarn", **YARN, "beta_fast": 4},
    "llama3:original=32": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 32},
    "p_rope:partial=0.5": {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    "longrope:factor=2,short=short.json,long=long.json": {"rope_type": "longrope", "factor": 2.0, **LISTS},
}  # fmt: skip


@pytest.fixture
def factor_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for key, values in LISTS.items():
        (tmp_path / f"{key.removesuffix('_factor')}.json").write_text(json.dumps(values))


@pytest.mark.parametrize("scheme", PUT_IN)
def test_a_scheme_put_in_gives_the_losses_of_transformers_own_configuration(llama, factor_files, scheme):
    card = put(llama, scheme)
    assert card.scheme == scheme.partition(":")[0] and card.train_length == 64
    assert card.prefix_stable == (card.scheme not in ("dynamic", "longrope"))
    model = card.load()
    assert model.route == "sdpa"
    for n in (48, 100):
        assert np.abs(losses(model, n) - by_transformers(llama, PUT_IN[scheme], n)).max() < 1e-5, n
    changed = np.abs(losses(model, 100) - by_transformers(llama, {}, 100)).max()
    assert changed > 1e-3


@pytest.mark.parametrize("name", ["mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "smollm3", "olmo2", "cohere",
                                  "granite", "gpt_neox", "falcon_rope"])  # fmt: skip
def test_yarn_can_be_put_into_every_architecture_with_frequencies(tmp_path, name):
    shape = {"num_attention_heads": 2} if name == "gpt_neox" else {}  # two pairs, so that yarn has a choice
    folder = tiny_models.build(name, tmp_path, **shape)
    model = put(folder, "yarn:factor=4,beta_fast=8").load()
    assert "full logits" not in model.route
    entry = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8, "original_max_position_embeddings": 64}
    assert np.abs(losses(model, 100) - by_transformers(folder, entry, 100)).max() < 1e-4
    assert np.abs(losses(model, 100) - by_transformers(folder, {}, 100)).max() > 1e-3


def test_the_factor_and_original_length_put_in_count(llama):
    card = put(llama, "yarn:factor=8,original=2048")
    assert card.scheme_params == {
        "theta": 10000.0, "partial": 1.0, "factor": 8.0, "original": 2048, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": True, "attention_scale": pytest.approx(1.2079442, abs=1e-7),
    }  # fmt: skip
    assert card.load().network.model.rotary_emb.attention_scaling == pytest.approx(1.2079442, abs=1e-7)


@pytest.mark.parametrize("original", [32, 64])
def test_dynamic_put_in_does_not_remember_longer_windows(llama, original):
    scheme = f"dynamic:factor=2,original={original}"
    model = put(llama, scheme).load()
    assert model.route == "sdpa"
    expected = {n: losses(put(llama, scheme).load(), n) for n in (48, 100)}
    for n in (48, 100, 200, 100, 48):
        found = losses(model, n)
        assert n == 200 or np.array_equal(found, expected[n]), n
    losses(model, 100)
    theta = 10000 * (2 * 100 / original - 1) ** (8 / 6)
    turned = [theta ** (-2 * k / 8) for k in range(4)]
    assert model.network.model.rotary_emb.inv_freq.tolist() == pytest.approx(turned, rel=1e-6)


def test_longrope_put_in_switches_above_the_original_length_and_back(llama, factor_files):
    model = put(llama, "longrope:factor=2,original=80,short=short.json,long=long.json").load()
    assert model.card.scheme_params["short"] == LISTS["short_factor"]
    rotary = model.network.model.rotary_emb
    # sqrt(1 + ln 2 / ln 80)
    assert rotary.attention_scaling == pytest.approx(math.sqrt(1 + math.log(2) / math.log(80)))
    seen = {}
    for n, key in ((80, "short_factor"), (81, "long_factor"), (80, "short_factor")):
        seen.setdefault(n, losses(model, n))
        expected = [10000 ** (-2 * k / 8) / factor for k, factor in enumerate(LISTS[key])]
        assert rotary.inv_freq.tolist() == pytest.approx(expected, rel=1e-6), n
        assert np.array_equal(losses(model, n), seen[n])
    assert np.abs(seen[81][:40] - seen[80][:40]).max() > 1e-3


@pytest.mark.parametrize("name", ["dynamic", "longrope"])
def test_plain_rope_takes_a_scaling_out(tmp_path, name):
    folder = tiny_models.build(name, tmp_path)
    card = put(folder, "rope")
    assert card.prefix_stable and card.scheme_params == {"theta": 10000.0, "partial": 1.0}
    model = card.load()
    assert np.abs(losses(model, 200) - by_transformers(folder, {"rope_type": "default"}, 200)).max() < 1e-4
    assert model.network.model.rotary_emb.attention_scaling == 1


def test_each_layer_type_keeps_its_own_base(tmp_path):
    folder = tiny_models.build("gemma3", tmp_path)
    params = put(folder, "linear:factor=4").scheme_params
    assert params.pop("window") == 16
    assert {layer: p["theta"] for layer, p in params.items()} == {"sliding_attention": 1e4, "full_attention": 1e6}
    rotary = put(folder, "linear:factor=4").load().network.model.rotary_emb
    for layer, theta in (("sliding_attention", 1e4), ("full_attention", 1e6)):
        expected = [theta ** (-2 * k / 8) / 4 for k in range(4)]
        assert getattr(rotary, f"{layer}_inv_freq").tolist() == pytest.approx(expected, rel=1e-6)
    both = put(folder, "linear:factor=4,theta=500").scheme_params
    assert both["sliding_attention"] == both["full_attention"]


def test_the_share_of_rotating_channels_is_the_checkpoints(tmp_path):
    folder = tiny_models.build("gpt_neox", tmp_path, num_attention_heads=2)  # 4 of 16 channels rotate
    card = put(folder, "ntk:factor=4")
    assert card.scheme_params == {"theta": 10000.0, "partial": 0.25, "factor": 4.0}
    freqs = card.load().network.gpt_neox.rotary_emb.inv_freq
    assert freqs.tolist() == pytest.approx([1.0, 0.01 / 4], rel=1e-6)
    assert put(folder, "ntk:factor=4,partial=0.25").scheme_params == card.scheme_params
    for scheme in ("ntk:factor=4,partial=0.5", "p_rope:partial=0.5"):
        with pytest.raises(UserError, match=r"channels of a head rotating cannot be put in: its code rotates 0\.25"):
            put(folder, scheme)


class Turning(torch.nn.Module):
    """A network that is nothing but its rotation, by frequencies of its own unless it `reads` the buffer."""

    def __init__(self, pairs: int = 4, reads: bool = True, **attributes) -> None:
        super().__init__()
        self.register_buffer("inv_freq", torch.ones(pairs))
        self.reads = reads
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, input_ids, use_cache):
        angle = torch.arange(input_ids.shape[1])[:, None] * (self.inv_freq if self.reads else 1)
        scale = getattr(self, "attention_scaling", 1)
        return angle.cos() * scale, angle.sin() * scale


TURNS = {"rope_type": "default", "attention_scaling": 1.0}


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (torch.nn.Linear(2, 2), "yarn in an architecture whose frequencies cannot be set"),
        (Turning(), "yarn in an architecture whose frequencies cannot be set"),
        (Turning(reads=False, **TURNS), "yarn in an architecture whose frequencies cannot be set"),
        (Turning(rope_type="default"), r"multiplies cos and sin by 1\.13863, its architecture has no place"),
        (Turning(pairs=8, **TURNS), "its code turns 8 pairs, the scheme 4"),
    ],
)
def test_an_architecture_with_other_rotations_is_refused(llama, network, said):
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(llama)
    override.replace_scheme("llama", config, detect(config, {}), "yarn:factor=4")
    with pytest.raises(UserError, match=said):
        Frequencies("llama", network, config).install(48)
    fitting = Turning(**TURNS)
    Frequencies("llama", fitting, config).install(48)
    assert fitting.attention_scaling == pytest.approx(0.1 * math.log(4) + 1) and fitting.inv_freq[-1] < 0.01


def test_a_configuration_without_the_width_of_a_head_takes_a_scheme(tmp_path, monkeypatch):
    shape = tiny_models.LLAMA | {"num_local_experts": 2, "num_experts_per_tok": 1}
    monkeypatch.setitem(tiny_models.CONFIGS, "mixtral", ("MixtralConfig", shape))
    folder = tiny_models.build("mixtral", tmp_path)
    assert json.loads((folder / "config.json").read_text())["head_dim"] is None
    model = put(folder, "linear:factor=4").load()
    expected = by_transformers(folder, {"rope_type": "linear", "factor": 4.0}, 100)
    assert model.route == "sdpa" and np.abs(losses(model, 100) - expected).max() < 1e-5


def test_phimoe_computes_its_own_frequencies_and_is_refused(tmp_path, monkeypatch):
    shape = tiny_models.LLAMA | {"num_local_experts": 2, "num_experts_per_tok": 1}
    monkeypatch.setitem(tiny_models.CONFIGS, "phimoe", ("PhimoeConfig", shape))
    folder = tiny_models.build("phimoe", tmp_path)
    assert describe(str(folder), FLOAT32).load().card.scheme == "rope"
    with pytest.raises(UserError, match="linear in an architecture whose frequencies cannot be set"):
        put(folder, "linear:factor=4").load()


@pytest.mark.parametrize(
    ("name", "scheme", "said"),
    [
        ("gpt2", "rope", "has the position scheme learned, which --scheme rope cannot replace"),
        ("bloom", "yarn:factor=2", "only a checkpoint with rotary positions can be given another scheme"),
        ("gptj", "yarn:factor=2", "its code keeps a table of rotations, so no frequencies can be installed"),
        ("llama", "alibi", "has the position scheme rope, which --scheme alibi cannot replace: a Hugging Face"),
        ("llama", "rope:base=3", "rope has no parameter 'base'; it takes: theta"),
        ("llama", "yarn:factor=2,original=-1", "it needs an original above 0, not -1"),
        ("llama", "longrope:factor=2", "it needs short, a file with a list of 4 numbers"),
        ("llama", "linear:factor=2,partial=0.5", "its code rotates 1 of them"),
        ("llama", "linear", "needs a factor"),
        ("llama", "linear:factor=no", "factor=no is not a number"),
    ],
)
def test_a_scheme_that_cannot_be_put_in_is_refused(name, scheme, said, llama, tmp_path):
    folder = llama if name == "llama" else tiny_models.build(name, tmp_path)
    with pytest.raises(UserError, match=said):
        describe(str(folder), LoadOptions(scheme=scheme))
