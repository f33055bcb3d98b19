"""Llama 3.1's scaling: RoPE that keeps short wavelengths, divides long ones by a factor, and blends in between.

    wavelength 2 pi / f_n      < L0/high: f_n        > L0/low: f_n / s
    in between                 f_n (t + (1 - t)/s),  t = (L0 / wavelength - low) / (high - low)

Defaults are Llama 3.1's (s = 8, low 1, high 4); `original` L0 is the training length unless given.
Dubey et al. 2024, arXiv 2407.21783; code: transformers, modeling_rope_utils.py.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class Llama3(rotary.Rotary):
    def __init__(
        self,
        shape: Shape,
        *,
        theta: float = 10000.0,
        partial: float = 1.0,
        factor: float = 8.0,
        original: int = 0,
        low: float = 1.0,
        high: float = 4.0,
    ) -> None:
        super().__init__(shape, theta, partial)
        original = original or shape.train_length
        self.need(factor=factor, original=original, low=low)
        if high <= low:
            raise self.refusal(f"low={low}, high={high}; high must be above low")
        self.freqs = rotary.llama3(self.rotated, theta, factor, original, low, high)
        self.params = {
            "theta": theta,
            "partial": partial,
            "factor": factor,
            "original": original,
            "low": low,
            "high": high,
        }
