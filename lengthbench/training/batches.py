"""The batch of an update: a function of seed and update number alone, so a resumed run sees the same data."""

import numpy as np
import torch
from torch import Tensor

from lengthbench.errors import UserError
from lengthbench.training import recall
from lengthbench.training.recipe import Recipe


class Batches:
    """Windows drawn uniformly over all places of all documents; part of them turned into recall exercises."""

    def __init__(self, documents: list[np.ndarray], tokenizer, recipe: Recipe) -> None:
        size = recipe.train_length + 1
        self.documents = [d for d in documents if len(d) >= size]
        if not self.documents:
            longest = max(map(len, documents), default=0)
            raise UserError(
                f"--train-length {recipe.train_length}: the longest training document has {longest} tokens, "
                f"it needs {size}; give more text or a shorter --train-length"
            )
        places = np.array([len(d) - size + 1 for d in self.documents], np.float64)
        self.shares = places / places.sum()
        self.tokenizer, self.recipe, self.size = tokenizer, recipe, size

    def __getitem__(self, update: int) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, T+1) int64, weights (B, T+1) float32 and which of the weights are recall answers."""
        rng = np.random.default_rng([self.recipe.seed, update])
        n_recall = round(self.recipe.recall * self.recipe.batch)
        tokens, weights = [], []
        for row in range(self.recipe.batch):
            window = self._window(rng)
            weight = np.ones(self.size, np.float32)
            if row < n_recall:
                progress = update / self.recipe.updates
                window, weight = recall.build(rng, window, self.tokenizer, self.size - 1, progress)
            tokens.append(window)
            weights.append(weight)
        weight = torch.from_numpy(np.stack(weights))
        return torch.from_numpy(np.stack(tokens)).long(), weight, weight == recall.ANSWER_WEIGHT

    def _window(self, rng: np.random.Generator) -> np.ndarray:
        document = self.documents[rng.choice(len(self.documents), p=self.shares)]
        begin = rng.integers(0, len(document) - self.size + 1)
        return document[begin : begin + self.size]
