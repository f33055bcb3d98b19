"""Time and memory against what people use today: python tests/benchmarks/ratios.py [NAME ...]

Random weights in the shapes of GPT-2 124M, a Llama of 135M and a BLOOM of 256 x 4 with 250,880 words; both sides in
one process on the same tokens, alternating, medians of the ratios. Both must give the same losses to 1e-4 nat a token.

    loop      the loop of transformers' guide: one window at a time, labels, full logits
    lm-eval   loglikelihood_rolling of lm-evaluation-harness, if it is installed
    bias      attention with its H x L x L bias made, against the strided one
    needle    a prompt for each depth and answer, against windows that go on where they part
"""

import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from lengthbench import engine, plan
from lengthbench.corpora.text import Document
from lengthbench.memory import PeakMemory, resident
from lengthbench.model import LoadOptions
from lengthbench.models.attention import attend
from lengthbench.models.huggingface.describe import describe
from lengthbench.models.loss import Head, score_rows
from lengthbench.probes import blocks, perplexity
from lengthbench.trials import Trial

PAIRS = 3
SWEEP = (128, 256, 512, 1024, 2048, 4096)


def shapes() -> dict[str, Any]:
    import transformers as t

    return {
        "gpt2": t.GPT2Config(n_positions=4096),
        "llama": t.LlamaConfig(
            vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, max_position_embeddings=8192, tie_word_embeddings=True,
        ),
        "bloom": t.BloomConfig(vocab_size=250_880, hidden_size=256, n_layer=4, n_head=8),
    }  # fmt: skip


def load(name: str):
    """A model of that shape with random weights, by way of a folder, as users load theirs."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    folder = Path(tempfile.mkdtemp()) / name
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(shapes()[name]).save_pretrained(folder)
    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    own = Tokenizer(models.BPE(letters, []))
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    PreTrainedTokenizerFast(tokenizer_object=own).save_pretrained(folder)
    return describe(str(folder), LoadOptions(dtype="float32")).load()


def tokens_for(model, n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, model.tokenizer.vocabulary, n).astype(np.int32)


def ours(
    model, tokens: np.ndarray, lengths: tuple[int, ...], protocol: str, stride: int | None, most: int | None = None
) -> np.ndarray:
    """Losses of all targets of all lengths, in order; of the middle block if `most` is one block of three."""
    probe = perplexity.Perplexity(lengths, (protocol,), stride)
    document = Document("random", tokens, np.ones_like(tokens))
    trials = probe.trials([document], blocks.select([len(tokens)], lengths, most), None, None)
    found = {r.trial: r for _, some in engine.run(model, trials, plan.make(trials, True, 2048)) for r in some}
    return np.concatenate([found[i].scores.nll for i in range(len(trials))])


def loop(
    model, tokens: np.ndarray, lengths: tuple[int, ...], stride: int | None, first: int = 1, last: int | None = None
) -> np.ndarray:
    """The guide's loop, window by window with full logits; the same targets as ours."""
    network, out = model.network, []
    ids = torch.from_numpy(tokens.astype(np.int64))[None]
    with torch.inference_mode():
        for length in lengths:
            step = stride or length
            for group in range(first, last or len(tokens), step):
                end = group + step - 1
                begin = max(0, end - length)
                logits = network(ids[:, begin:end]).logits
                nll = F.cross_entropy(logits[0].float(), ids[0, begin + 1 : end + 1], reduction="none")
                out.append(nll[-step:].numpy())
    return np.concatenate(out)


def compare(title: str, one: Callable[[], np.ndarray], other: Callable[[], np.ndarray], pairs: int = PAIRS) -> None:
    ratios = []
    for _ in range(pairs):
        began = time.perf_counter()
        found = one()
        middle = time.perf_counter()
        expected = other()
        ratios.append((time.perf_counter() - middle) / (middle - began))
        assert np.abs(found - expected).max() < 1e-4, f"{title}: losses differ by {np.abs(found - expected).max()}"
    print(f"{title:58} x {statistics.median(ratios):.2f}  ({min(ratios):.2f} .. {max(ratios):.2f})", flush=True)


def windows(name: str) -> None:
    model = load(name)
    n = 4 * 1024 if name != "bloom" else 2 * 1024
    tokens = tokens_for(model, n + 1)
    compare(
        f"{name}: nonoverlapping L=1024, loop / ours",
        lambda: ours(model, tokens, (1024,), "nonoverlapping", None),
        lambda: loop(model, tokens, (1024,), None),
    )
    # The middle block of three: no window is clipped by the start, so none is a prefix of another.
    three = tokens_for(model, 3 * 1024 + 1)
    compare(
        f"{name}: sliding L=1024 S=64, loop / ours",
        lambda: ours(model, three, (1024,), "sliding", 64, 1024),
        lambda: loop(model, three, (1024,), 64, 1025, 2048),
    )


def sweep() -> None:
    model = load("gpt2")
    tokens = tokens_for(model, 4096 + 1)
    compare(
        "gpt2: sweep 128..4096, loop at each length / ours",
        lambda: ours(model, tokens, SWEEP, "nonoverlapping", None),
        lambda: loop(model, tokens, SWEEP, None),
    )


def needle() -> None:
    """One haystack of 1024 tokens, evidence at 11 depths, 5 answers: each prompt whole, against a chain."""
    model = load("llama")
    tokens = tokens_for(model, 1100)
    hay, evidence, question, answers = tokens[:990], tokens[990:1010], tokens[1010:1022], tokens[1030:1040]
    trials = []
    for depth in np.linspace(0, len(hay), 11).astype(int):
        for k in range(5):
            parts = [hay[:depth], evidence, hay[depth:], question, answers[2 * k : 2 * k + 2]]
            whole = np.concatenate(parts)
            trials.append(Trial(whole, np.arange(len(whole) - 2, len(whole))))

    def measured(chains: bool) -> np.ndarray:
        made = plan.make(trials, True, 2048, chains)
        found = {r.trial: r.scores for _, results in engine.run(model, trials, made) for r in results}
        return np.concatenate([found[n].nll for n in range(len(trials))])

    assert model.chains
    compare("llama: 11 depths x 5 answers, whole prompts / chained", lambda: measured(True), lambda: measured(False), 1)


def lm_eval() -> None:
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        print("lm-eval is not installed")
        return
    import logging

    logging.disable(logging.WARNING)
    model = load("gpt2")
    text = (Path(__file__).parents[2] / "lengthbench/texts/novels/doyle_sherlock.txt").read_text("utf-8")
    text = text.encode("ascii", "replace").decode()[: 4 * 1024 + 1]
    tokens, _ = model.tokenizer.encode(text)
    other = HFLM(
        pretrained=model.network, tokenizer=model.tokenizer.whole, batch_size=1, max_length=1024, prefix_token_id=0
    )
    request = [Instance(request_type="loglikelihood_rolling", doc={}, arguments=(text,), idx=0)]
    ratios, peaks = [], []
    for _ in range(PAIRS):
        times = []
        for call in (
            lambda: ours(model, tokens, (1024,), "nonoverlapping", None),
            lambda: other.loglikelihood_rolling(request, disable_tqdm=True),
        ):
            before = resident()
            with PeakMemory() as memory:
                began = time.perf_counter()
                call()
                times.append(time.perf_counter() - began)
            peaks.append((memory.bytes - before) / 2**20)
        ratios.append(times[1] / times[0])
    print(f"{'gpt2: rolling L=1024, batch 1, lm-eval / ours':58} x {statistics.median(ratios):.2f}")
    print(f"{'   extra memory, MB: lm-eval, ours':58} {max(peaks[1::2]):.0f}, {max(peaks[0::2]):.0f}")


def memory() -> None:
    """Length 8192 with 128,256 words: the losses alone, against the full logits in float32."""
    hidden, weight = torch.randn(8192, 64), torch.randn(128_256, 64)
    targets = torch.arange(8192)
    before = resident()
    with PeakMemory() as peak:
        score_rows(hidden, targets, Head(weight))
    full = 8192 * 128_256 * 4
    print(f"{'losses at L=8192, 128,256 words: extra memory / logits':58} x {(peak.bytes - before) / full:.4f}")


def bias() -> None:
    """ALiBi at 8192 tokens, 8 heads of 64."""
    torch.manual_seed(0)
    n, heads = 8192, 8
    q, k, v = (torch.randn(1, heads, n, 64) for _ in range(3))
    table = -torch.tensor([2.0**-h for h in range(1, heads + 1)])[:, None] * torch.arange(n)
    peaks: dict[str, float] = {}

    def measured(name: str, call: Callable[[], torch.Tensor]) -> np.ndarray:
        before = resident()
        with torch.inference_mode(), PeakMemory() as peak:
            out = call()
        peaks[name] = peak.bytes - before
        return out.numpy()

    def made() -> torch.Tensor:
        distance = torch.arange(n)[:, None] - torch.arange(n)
        full = table[:, distance.clamp(min=0)].masked_fill_(distance < 0, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=full[None])

    compare("ALiBi attention at 8192, bias made / strided", lambda: measured("ours", lambda: attend(q, k, v, table)),
            lambda: measured("made", made))  # fmt: skip
    print(f"{'   extra memory, strided / made':58} x {peaks['ours'] / peaks['made']:.4f}")


PARTS = {
    **{name: functools.partial(windows, name) for name in ("gpt2", "llama", "bloom")},
    "sweep": sweep, "needle": needle, "lm-eval": lm_eval, "memory": memory, "bias": bias,
}  # fmt: skip

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
