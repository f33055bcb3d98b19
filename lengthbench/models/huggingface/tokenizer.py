"""A transformers tokenizer, its start token, and the bytes that each token completes."""

import hashlib
import json

import numpy as np

from lengthbench.errors import UserError
from lengthbench.models.huggingface.source import Source
from lengthbench.models.tokenizers_file import completed_bytes


class HuggingFaceTokenizer:
    """`vocabulary` is the number of rows of the model's embedding, so that a foreign tokenizer is noticed.

    What the tokenizer says of a longest input is never asked: it is often 10^30, and never a limit.
    """

    def __init__(self, spec: str, where: Source, vocabulary: int, allow_remote_code: bool) -> None:
        from transformers import AutoTokenizer

        try:
            own = AutoTokenizer.from_pretrained(where.place, trust_remote_code=allow_remote_code, **where.arguments())
        except Exception as error:  # transformers raises many kinds here
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"--model {spec}: no tokenizer can be made from it: {text}") from None
        if not own.is_fast:
            raise UserError(f"--model {spec}: its tokenizer has no tokenizer.json, so the bytes of a token are not known")
        self.own, self.vocabulary = own, vocabulary
        self.name = type(own).__name__
        added = self._added()
        self.adds_start = added is not None
        self.start: int | None = own.bos_token_id if added is None else added
        special = json.dumps(own.special_tokens_map, sort_keys=True, default=str)
        self.sha256 = hashlib.sha256((own.backend_tokenizer.to_str() + special).encode()).hexdigest()

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids (n,) without special tokens, and the UTF-8 bytes each completes (n,); int32."""
        encoded = self.own(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return np.array(encoded["input_ids"], np.int32), completed_bytes(text, encoded["offset_mapping"])

    def decode(self, tokens: np.ndarray) -> str:
        return self.own.decode([int(t) for t in tokens])

    def _added(self) -> int | None:
        """The token the tokenizer itself puts in front, if it does."""
        bare = self.own("a", add_special_tokens=False)["input_ids"]
        whole = self.own("a")["input_ids"]
        return whole[0] if len(whole) > len(bare) and whole[: len(bare)] != bare else None
