"""A Hugging Face decoder, ready to score: hidden states of the body, losses from its head in tiles.

On loading, the head is put to the test: body and head together must give the model's own logits. If they do not
(an unknown scale, a head of another kind), the model's full logits are used: slower, never wrong.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lengthbench.model import Card, LoadOptions
from lengthbench.models import torch_scoring
from lengthbench.models.huggingface.rotation import Rotation
from lengthbench.models.huggingface.source import Source
from lengthbench.models.huggingface.tokenizer import HuggingFaceTokenizer
from lengthbench.models.loss import ROWS, TILE, Head, NoHead
from lengthbench.trials import Scores, Trial

PROBE = 48
"""Tokens of the test input."""
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
HALF_TOLERANCE = 0.05
"""Of the logits' spread, for 16-bit types."""


class HuggingFaceModel:
    def __init__(
        self,
        card: Card,
        network: Any,
        where: Source,
        dtype: str,
        device: str,
        weights_sha256: str,
        options: LoadOptions,
    ) -> None:
        self.card, self.network, self.dtype, self.device = card, network, dtype, device
        self.weights_sha256 = weights_sha256
        embedding = network.get_input_embeddings().weight
        self.tokenizer = HuggingFaceTokenizer(card.name, where, len(embedding), options.allow_remote_code)
        self.attention = getattr(network.config, "_attn_implementation", None) or "own"
        self.rotation = None if card.prefix_stable else Rotation(card.name, network)
        self.head: Head | NoHead = self._head(len(embedding))
        self.route = f"{self.attention}, {'tiled head' if isinstance(self.head, Head) else 'full logits'}"

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        return torch_scoring.score(trials, self._states, self.head)

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        """Activations of one layer, scratch of the head, and what the attention of this architecture materialises."""
        config = self.network.config
        width, heads = config.hidden_size, config.num_attention_heads
        size = torch.finfo(getattr(torch, self.dtype)).bits // 8
        wide = max(4 * width, getattr(config, "intermediate_size", None) or 0)
        activations = batch * n_fed * (8 * width + 3 * wide) * size
        if self.attention == "eager":
            scores = 3 * batch * heads * n_fed**2 * 4
        else:
            masked = getattr(config, "sliding_window", None) is not None or self.card.scheme == "alibi"
            scores = batch * n_fed**2 * (4 if masked else 0) * (heads if self.card.scheme == "alibi" else 1)
        vocabulary = self.head.vocabulary
        head = batch * n_fed * vocabulary * (size + 4) if isinstance(self.head, NoHead) else 4 * ROWS * TILE * 4
        return activations + scores + head

    def _states(self, tokens: Tensor) -> Tensor:
        self._prepare(tokens.shape[1])
        if isinstance(self.head, NoHead):
            return self.network(input_ids=tokens, use_cache=False).logits
        return self.network.base_model(input_ids=tokens, use_cache=False).last_hidden_state

    def _prepare(self, n_tokens: int) -> None:
        if self.rotation:
            self.rotation.prepare(n_tokens)
        if self.network.config.model_type == "mpt" and n_tokens > self.network.config.max_seq_len:
            # The bias is cut from a table of this size, and only its size depends on it.
            self.network.config.max_seq_len = n_tokens

    def _head(self, vocabulary: int) -> Head | NoHead:
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(0, vocabulary, (1, PROBE), generator=generator).to(self.device)
        head = _guess(self.network)
        with torch.inference_mode():
            self._prepare(PROBE)
            expected = self.network(input_ids=tokens, use_cache=False).logits[0].float()
            if head is not None:
                states = self.network.base_model(input_ids=tokens, use_cache=False).last_hidden_state[0]
                if states.shape[-1] == head.weight.shape[1]:
                    found = head.logits(states, 0, head.vocabulary)
                    limit = TOLERANCE.get(self.dtype) or HALF_TOLERANCE * float(expected.std())
                    if found.shape == expected.shape and float((found - expected).abs().max()) <= limit:
                        return head
        return NoHead(expected.shape[-1], expected.device)


def _guess(network: Any) -> Head | None:
    """The head as architectures usually have it."""
    layer = network.get_output_embeddings()
    if layer is None or getattr(layer, "weight", None) is None or network.base_model is network:
        return None
    scale = float(getattr(network, "logit_scale", None) or getattr(network.config, "logit_scale", None) or 1.0)
    scale /= float(getattr(network.config, "logits_scaling", None) or 1.0)
    softcap = getattr(network.config, "final_logit_softcapping", None)
    return Head(layer.weight, getattr(layer, "bias", None), scale, softcap)
