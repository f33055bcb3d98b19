"""Tiny checkpoints with random weights, of the architectures people measure, written as Hugging Face folders.

build("llama", folder)    config.json, model.safetensors and a byte-level BPE tokenizer of 300 words
"""

import json
from pathlib import Path
from typing import Any

VOCABULARY = 300
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": VOCABULARY}
LLAMA = SHAPE | {"num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY}
FACTORS = {"short_factor": [1.0, 1.1, 1.3, 1.7], "long_factor": [1.0, 2.0, 4.0, 8.0]}

PROSE = """the then there and hand land in the  rain, there then
whatever stood between house and garden was covered with snow, nobody knew which path would lead home again; """

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", GPT),
    "opt": ("OPTConfig", SHAPE | {"ffn_dim": 48, "max_position_embeddings": 64, "word_embed_proj_dim": 16}),
    "gpt_neox": (
        "GPTNeoXConfig",
        SHAPE | {"intermediate_size": 48, "max_position_embeddings": 64, "rotary_pct": 0.25},
    ),
    "gptj": ("GPTJConfig", GPT | {"rotary_dim": 4}),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY}),
    "mpt": (
        "MptConfig",
        {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "vocab_size": VOCABULARY},
    ),
    "falcon_alibi": ("FalconConfig", SHAPE | {"alibi": True, "new_decoder_architecture": False}),
    "falcon_rope": ("FalconConfig", SHAPE | {"alibi": False, "max_position_embeddings": 64}),
    "llama": ("LlamaConfig", LLAMA),
    "mistral": ("MistralConfig", LLAMA | {"sliding_window": 16}),
    "qwen2": ("Qwen2Config", LLAMA),
    "qwen3": ("Qwen3Config", LLAMA | {"head_dim": 8}),
    "gemma2": ("Gemma2Config", LLAMA | {"head_dim": 8, "sliding_window": 16, "final_logit_softcapping": 2.0}),
    "gemma3": (
        "Gemma3TextConfig",
        LLAMA | {"head_dim": 8, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "phi3": ("Phi3Config", LLAMA | {"pad_token_id": 0, "original_max_position_embeddings": 64}),
    "smollm3": ("SmolLM3Config", LLAMA | {"no_rope_layers": [1, 0], "pad_token_id": 0}),
    "olmo2": ("Olmo2Config", LLAMA),
    "cohere": ("CohereConfig", LLAMA | {"logit_scale": 3.0}),
    "granite": ("GraniteConfig", LLAMA | {"logits_scaling": 0.4}),
    "dynamic": ("LlamaConfig", LLAMA | {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}),
    "longrope": (
        "Phi3Config",
        LLAMA
        | {"pad_token_id": 0, "original_max_position_embeddings": 64, "max_position_embeddings": 128}
        | {"rope_parameters": {"rope_type": "longrope", **FACTORS}},
    ),
}
"""Name -> configuration class and its arguments; what matters differs from the class's defaults."""


def build(name: str, folder: Path, **changes: Any) -> Path:
    """The checkpoint `name` in `folder`, weights drawn from a seed of its own."""
    import torch
    import transformers

    cls, arguments = CONFIGS[name]
    arguments = json.loads(json.dumps(arguments | changes))  # a config may edit what it is given
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = getattr(transformers, cls)(**arguments)
        network = transformers.AutoModelForCausalLM.from_config(config)
        for parameter in network.parameters():
            # Wider than the initial 0.02: near-uniform logits would hide a wrong position.
            torch.nn.init.normal_(parameter, std=0.15 if parameter.ndim > 1 else 0.3)
    network.save_pretrained(folder)
    tokenizer(folder)
    return folder


def tokenizer(folder: Path, **special: str) -> None:
    """A byte-level BPE with 256 bytes and 44 merges, saved as transformers does; `bos_token=` etc. are added."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([PROSE] * 20, trainer)
    assert backend.get_vocab_size() == VOCABULARY - len(special)
    PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(folder)


def edit(folder: Path, **changes: Any) -> Path:
    """Change fields of config.json; None removes one."""
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), "utf-8")
    return folder
