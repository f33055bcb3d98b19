"""No positions at all (NoPE): order reaches the model only through the causal mask.

Kazemnejad et al. 2023, arXiv 2305.19466; code: McGill-NLP/length-generalization.
"""

from lengthbench.scheme import Scheme


class NoPositions(Scheme):
    """Opens no door."""
