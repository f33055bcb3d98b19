"""Train a reference model: AdamW, warm-up and cosine, checkpoints that resume to the same result.

loss = sum(w nll) / sum(w) over the targets of the batch;  w from batches.py
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.nn import functional as F

from lengthbench.memory import PeakMemory
from lengthbench.models.decoder import Decoder
from lengthbench.training import checkpoint
from lengthbench.training.batches import Batches
from lengthbench.training.recipe import Recipe

CHECKPOINT_EVERY = 100
"""Updates."""
POINTS = 200
"""Points on the loss curve."""


@dataclass
class Progress:
    """Where a training stands: all of it is in the checkpoint beside the weights."""

    update: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    curve: list[dict] = field(default_factory=list)
    """Points of update, loss (nats a token of plain text) and recall_loss (nats a token of an answer)."""


def train(
    recipe: Recipe,
    batches: Batches,
    vocabulary: int,
    folder: Path,
    on_update: Callable[[Progress, int], None] = lambda progress, tokens: None,
) -> tuple[Decoder, Progress]:
    """Run the recipe to its end, from the checkpoint in `folder` if there is one. Keeps no global seed."""
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        model = Decoder(recipe.decoder(vocabulary))
    optimizer = _optimizer(model, recipe)
    progress = checkpoint.load(folder, recipe, model, optimizer) or Progress()
    every = max(1, recipe.updates // POINTS)
    plain_sum = plain_n = answer_sum = answer_n = 0.0
    while progress.update < recipe.updates:
        began = time.perf_counter()
        with PeakMemory() as memory:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(recipe, progress.update)
            tokens, weights, is_answer = batches[progress.update]
            loss, nll = _step(model, tokens, weights)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        plain, answer = weights[:, 1:] == 1, is_answer[:, 1:]
        plain_sum, plain_n = plain_sum + float(nll[plain].sum()), plain_n + int(plain.sum())
        answer_sum, answer_n = answer_sum + float(nll[answer].sum()), answer_n + int(answer.sum())
        progress.update += 1
        progress.seconds += time.perf_counter() - began
        progress.peak_memory_bytes = max(progress.peak_memory_bytes, memory.bytes)
        if progress.update % every == 0 or progress.update == recipe.updates:
            progress.curve.append(
                {
                    "update": progress.update,
                    "loss": plain_sum / plain_n if plain_n else None,
                    "recall_loss": answer_sum / answer_n if answer_n else None,
                }
            )
            plain_sum = plain_n = answer_sum = answer_n = 0.0
        # Only where a point of the curve ends: the sums of a begun point are not in the checkpoint.
        if progress.update % (every * max(1, CHECKPOINT_EVERY // every)) == 0:
            checkpoint.save(folder, recipe, model, optimizer, progress)
        on_update(progress, tokens[:, 1:].numel())
    return model, progress


def learning_rate(recipe: Recipe, update: int) -> float:
    """Linear over the warm-up, then half a cosine down to a tenth of the peak."""
    if update < recipe.warmup:
        return recipe.learning_rate * (update + 1) / recipe.warmup
    part = (update - recipe.warmup) / max(1, recipe.updates - recipe.warmup)
    return recipe.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * part)))


def _step(model: Decoder, tokens: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    logits = model(tokens[:, :-1])
    nll = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view_as(tokens[:, 1:])
    weight = weights[:, 1:]
    return (nll * weight).sum() / weight.sum(), nll.detach()


def _optimizer(model: Decoder, recipe: Recipe) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95), fused=True)
