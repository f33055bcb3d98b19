"""The reference decoder: a small pre-norm transformer in which only the position scheme varies.

    x = sqrt(W) E[token] (+ positions);  x += attention(norm(x));  x += mlp(norm(x));  logits = norm(x) E^T

Token embeddings have unit variance (init std W^-1/2, times sqrt(W)), so that an added sinusoid of rms 0.71
is balanced. Everything but the scheme is the same for all: shapes, initial weights, data order.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lengthbench import registry
from lengthbench.models.attention import attend
from lengthbench.scheme import Shape


@dataclass(frozen=True)
class DecoderConfig:
    scheme: str
    """As `registry.load` reads it, for example `rope:theta=500000`."""
    train_length: int
    """Longest window of the training run, in tokens."""
    layers: int = 4
    width: int = 128
    heads: int = 8
    vocabulary: int = 256

    @property
    def shape(self) -> Shape:
        return Shape(self.width, self.heads, self.train_length)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm_mlp = nn.LayerNorm(width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(
        self, x: Tensor, scheme, pos: Tensor, table: Tensor | None, past: "Past | None" = None, number: int = 0
    ) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        q, k = scheme.rotate(q, k, pos)
        if past is not None:
            k, v = past.extend(number, k, v)
        mixed = attend(q, k, v, table).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.relu(self.up(self.norm_mlp(x)), inplace=True))


class Past:
    """Keys and values of the tokens fed so far, in one buffer; to go back is to make `length` smaller."""

    def __init__(self, network: "Decoder", capacity: int) -> None:
        c, like = network.config, network.head
        size = (2, c.layers, 1, c.heads, capacity, c.width // c.heads)
        self.buffer = torch.empty(size, dtype=like.dtype, device=like.device)
        self.length = 0
        """Tokens that count; what stands behind them is overwritten."""

    def cut(self, length: int) -> None:
        assert length <= self.length
        self.length = length

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """New keys and values (1, H, T, D) of a layer -> all of it, (1, H, length + T, D)."""
        end = self.length + k.shape[2]
        for kind, new in enumerate((k, v)):
            self.buffer[kind, layer, :, :, self.length : end] = new
        return self.buffer[0, layer, :, :, :end], self.buffer[1, layer, :, :, :end]


class Decoder(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width, bias=False)
        self._initialise()
        # Last, so that the weights above are the same for every scheme.
        self.scheme = registry.load(config.scheme, config.shape)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.width**-0.5)
        for layer in self._layers():
            # Residual branches start small: 2 a layer add up to unit variance (GPT-2, section 2.3).
            nn.init.normal_(layer.out.weight, std=(2 * self.config.layers * self.config.width) ** -0.5)
            nn.init.normal_(layer.down.weight, std=(8 * self.config.layers * self.config.width) ** -0.5)

    def _layers(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    @property
    def head(self) -> Tensor:
        """(V, W) output weights, tied to the token embeddings."""
        return self.tokens.weight

    def hidden(self, tokens: Tensor, past: Past | None = None) -> Tensor:
        """Tokens (B, T) -> (B, T, W), ready to be multiplied by `head`.

        past: what was fed before, for one window (1, T); the tokens continue it and are added to it. Only schemes
        that are prefix-stable can be continued.
        """
        before = past.length if past is not None else 0
        length = before + tokens.shape[1]
        pos = torch.arange(before, length, device=tokens.device)
        x = self.scheme.embed(self.tokens(tokens) * math.sqrt(self.config.width), pos)
        table = self.scheme.distance_table(length)
        if table is not None:
            table = table.to(x.device, torch.float64 if x.dtype == torch.float64 else torch.float32)
        for number, layer in enumerate(self.layers):
            x = layer(x, self.scheme, pos, table, past, number)
        if past is not None:
            past.length = length
        return self.norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> logits (B, T, V)."""
        return F.linear(self.hidden(tokens), self.head)
