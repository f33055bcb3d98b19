"""A transformers checkpoint that scores trials: its base model's hidden states, then losses of the scored rows.

At load a few random tokens prove three things: later tokens change no earlier logit, or the load fails; the
attention in use gives what the plain one gives, or the plain one is used; hidden states and head give the class's
own logits, or the full logits are used.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.models import torch_scoring
from lengthbench.models.huggingface import full_logits, head, memory, past
from lengthbench.models.huggingface.quiet import quiet
from lengthbench.models.huggingface.stateless import Frequencies
from lengthbench.models.huggingface.tokenizer import HFTokenizer
from lengthbench.trials import Scores, Trial


class HuggingFaceModel:
    def __init__(
        self, card: Card, network: Any, tokenizer: HFTokenizer, dtype: str, device: str, weights_sha256: str
    ) -> None:
        self.card, self.network, self.tokenizer = card, network, tokenizer
        self.dtype, self.device, self.weights_sha256 = dtype, device, weights_sha256
        self.config = network.config.get_text_config(decoder=True)
        self.mpt_length = getattr(self.config, "max_seq_len", 0) if self.config.model_type == "mpt" else 0
        with torch.inference_mode():
            tokens = self._probe()
            logits = self._sound_logits(tokens, self._causal_logits(tokens))
            # From here on frequencies are our own; that they give the same logits is proved with the head.
            self.frequencies = Frequencies(card.name, network, self.config)
            self.head = head.find(network, self.hidden, tokens, logits)
        self.route = network.config._attn_implementation or "eager"
        if self.head is None:
            self.route += ", full logits"
            slow = "its head has a form of its own: losses come from full logits, slower"
            self.card = replace(self.card, warnings=(*self.card.warnings, slow))

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        """Losses of exactly the scored tokens; all trials have the same `n_fed`."""
        with quiet():
            if self.head is not None:
                return torch_scoring.score(trials, self.hidden, self.head)
            self._prepare(trials[0].n_fed)
            return full_logits.score(trials, self.network, self.device)

    @functools.cached_property
    def chains(self) -> bool:
        """Whether its cache can go back, proved on a few tokens."""
        return self.head is not None and self.card.prefix_stable and past.works(self)

    def score_chain(self, trials: Sequence[Trial], shared: Sequence[int]) -> list[Scores]:
        """Windows that begin alike, one after the other; trial i keeps shared[i] fed tokens of the one before."""
        assert self.head is not None
        self._prepare(max(t.n_fed for t in trials))
        with quiet():
            return torch_scoring.score_chain(trials, shared, past.Past(), self.hidden, self.head)

    def generate(self, trials: Sequence[Trial]) -> list[Scores]:
        """Greedy continuations, ended by any of the model's end tokens; no sampling setting of its own applies."""
        from transformers import GenerationConfig

        own = self.network.generation_config
        ends = own.eos_token_id if own.eos_token_id is not None else self.config.eos_token_id
        ends = [] if ends is None else list(ends) if isinstance(ends, list | tuple) else [ends]
        greedy = GenerationConfig(
            max_new_tokens=trials[0].budget,
            do_sample=False,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,
        )
        self._prepare(trials[0].n_fed + trials[0].budget)
        fed = torch.from_numpy(np.stack([t.fed for t in trials]).astype(np.int64)).to(self.device)
        with quiet(), torch.inference_mode():
            out = self.network.generate(fed, attention_mask=torch.ones_like(fed), generation_config=greedy)
        nothing, found = np.zeros(0, np.float32), []
        for row in out[:, fed.shape[1] :].cpu().numpy():
            at = np.flatnonzero(np.isin(row, ends))
            output = row[: at[0]] if len(at) else row
            found.append(Scores(nothing, nothing.astype(bool), output.astype(np.int32), bool(len(at))))
        return found

    def hidden(self, tokens: Tensor, before: "past.Past | None" = None) -> Tensor:
        """Tokens (B, T) -> (B, T, W), ready to be multiplied by the head; `before` is continued by them."""
        if before is not None:
            return before.extend(self.network.base_model, tokens)
        self._prepare(tokens.shape[1])
        return self.network.base_model(input_ids=tokens, use_cache=False)[0]

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        rows = n_fed if self.head is None and not full_logits.keeps_rows(self.network) else 0
        return memory.estimate(self.config, self.network.config._attn_implementation, n_fed, batch, self.dtype, rows)

    def _prepare(self, n_fed: int) -> None:
        """What must be set for a length; keyed by the length alone, so that no result depends on an earlier one."""
        self.frequencies.install(n_fed)
        if self.mpt_length:
            # The ALiBi row is cut from the end of max_seq_len numbers: longer changes nothing for shorter input.
            self.config.max_seq_len = max(self.mpt_length, n_fed)

    def _logits(self, tokens: Tensor) -> Tensor:
        return self.network(input_ids=tokens, use_cache=False).logits

    def _probe(self) -> Tensor:
        """(1, T) random tokens; a generator of its own leaves everybody else's alone."""
        size = min(head.TOKENS, self.card.limit or head.TOKENS)
        dice = torch.Generator().manual_seed(0)
        vocabulary = min(self.config.vocab_size, self.tokenizer.vocabulary)
        return torch.randint(vocabulary, (1, size), generator=dice).to(self.device)

    def _sound_logits(self, tokens: Tensor, fast: Tensor) -> Tensor:
        """The logits of the attention that is kept: a fast one that drops a bias or a cap is quick and wrong."""
        name = self.network.config._attn_implementation
        if name in (None, "eager"):
            return fast
        try:
            self.network.set_attn_implementation("eager")
        except (ValueError, ImportError):
            return fast
        if self.network.config._attn_implementation != "eager":
            return fast  # Falcon has one attention only; its eager form adds ALiBi twice
        plain = self._logits(tokens)
        if not head.agree(fast.float(), plain.float(), self.network.dtype):
            return plain
        self.network.set_attn_implementation(name)
        return fast

    def _causal_logits(self, tokens: Tensor) -> Tensor:
        """(1, T, V) the class's own logits, if they do not change with what comes later."""
        half = tokens.shape[1] // 2
        other = tokens.clone()
        other[:, half:] = (other[:, half:] + 1) % min(self.config.vocab_size, self.tokenizer.vocabulary)
        logits = self._logits(torch.cat([tokens, other]))
        if half and not head.agree(logits[1, :half].float(), logits[0, :half].float(), self.network.dtype):
            raise UserError(
                f"{self.card.name}: later tokens change its earlier predictions, so it is no causal language model"
            )
        return logits[:1]
