"""YaRN: RoPE that keeps the fast pairs, divides the slow ones by a factor, and makes all logits a little larger.

    f'_n = f_n (1 - g_n) + g_n f_n / s,   g_n rises from 0 to 1 between the pairs that turn over `beta_fast` times
                                          and `beta_slow` times in `original` tokens
    cos and sin of queries and keys times A = 0.1 ln s + 1 (1 if s <= 1)

`original` is the training length unless given; `truncate` widens the ramp to whole pairs.
Peng et al. 2023, arXiv 2309.00071, sections 3.2 and 3.4; the ramp as in jquesnelle/yarn,
scaled_rope/LlamaYaRNScaledRotaryEmbedding.py.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class Yarn(rotary.Rotary):
    def __init__(
        self,
        shape: Shape,
        *,
        theta: float = 10000.0,
        partial: float = 1.0,
        factor: float = 0.0,
        original: int = 0,
        beta_fast: float = 32.0,
        beta_slow: float = 1.0,
        truncate: bool = True,
    ) -> None:
        super().__init__(shape, theta, partial)
        original = original or shape.train_length
        self.need(factor=factor, original=original, beta_slow=beta_slow)
        if beta_fast <= beta_slow or theta <= 1:
            raise self.refusal(
                f"theta={theta}, beta_fast={beta_fast}, beta_slow={beta_slow}; "
                "theta must be above 1 and beta_fast above beta_slow"
            )
        self.freqs = rotary.yarn(self.rotated, theta, factor, original, beta_fast, beta_slow, truncate)
        self.attention_scale = rotary.yarn_scale(factor)
        self.params = {
            "theta": theta,
            "partial": partial,
            "factor": factor,
            "original": original,
            "beta_fast": beta_fast,
            "beta_slow": beta_slow,
            "truncate": truncate,
            "attention_scale": self.attention_scale,
        }
