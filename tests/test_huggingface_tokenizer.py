"""Tokens of a checkpoint's own tokenizer, the bytes each completes, its start token, and what is refused."""

import json

import numpy as np
import pytest
import tiny_models
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface.describe import describe
from lengthbench.models.huggingface.source import Source
from lengthbench.models.huggingface.tokenizer import HFTokenizer

ENGLISH = "  the rain there,\n\n and then the land \t"
JAPANESE = "吾輩は猫である。名前はまだ無い。"
EMOJI = "hand 👩‍👩‍👧 in 🇯🇵 hand é"


def read(folder) -> HFTokenizer:
    return HFTokenizer(str(folder), Source(str(folder), str(folder), local=True))


@pytest.fixture
def bytelevel(tmp_path):
    tiny_models.tokenizer(tmp_path)
    return read(tmp_path)


@pytest.mark.parametrize("text", [ENGLISH, JAPANESE, EMOJI, "", " ", "\n"])
def test_the_bytes_add_up_and_the_text_comes_back(bytelevel, text):
    ids, n_bytes = bytelevel.encode(text)
    assert ids.dtype == n_bytes.dtype == np.int32 and len(ids) == len(n_bytes)
    assert n_bytes.sum() == len(text.encode())
    assert bytelevel.decode(ids) == text


def test_a_character_of_several_tokens_counts_where_it_is_complete(bytelevel):
    ids, n_bytes = bytelevel.encode("a猫b")
    # One token a byte: a, three of the cat, b.
    assert len(ids) == 5 and n_bytes.tolist() == [1, 0, 0, 3, 1]


@pytest.mark.parametrize("text", [ENGLISH, JAPANESE, EMOJI])
def test_a_token_completes_what_its_addition_to_the_decoded_text_does(bytelevel, text):
    ids, n_bytes = bytelevel.encode(text)
    for n in range(len(ids) + 1):
        decoded = bytelevel.decode(ids[:n]).rstrip("�")
        assert n_bytes[:n].sum() == len(decoded.encode()), n


def test_white_space_inside_a_token_is_its_own(tmp_path):
    # Trimmed offsets, as GPT-2's tokenizer.json asks for, would give the line break to the token behind it.
    backend = Tokenizer(models.WordLevel({"ab;Ċ": 0, "c": 1, "?": 2}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("c", "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(tmp_path)
    ids, n_bytes = read(tmp_path).encode("ab;\nc")
    assert ids.tolist() == [0, 1] and n_bytes.tolist() == [4, 1]


@pytest.mark.parametrize("text", [ENGLISH, JAPANESE, EMOJI, "hello world"])
def test_sentencepiece_with_byte_fallback(tmp_path, text):
    # As Llama 2: spaces become a word mark, one is put in front, unknown characters fall to bytes.
    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    words = ["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=words, show_progress=False)
    backend.train_from_iterator(["the then there and hand land in the rain hello world"] * 5, trainer)
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>").save_pretrained(tmp_path)
    tokenizer = read(tmp_path)
    ids, n_bytes = tokenizer.encode(text)
    assert n_bytes.sum() == len(text.encode()) and (n_bytes >= 0).all()
    assert tokenizer.decode(ids) == text


def test_a_whole_book_has_no_length_limit_and_no_warning(tmp_path, capfd):
    tiny_models.tokenizer(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 16, "truncation_side": "left"}))
    text = "and then the rain in the land there, " * 5000
    _, n_bytes = read(tmp_path).encode(text)
    assert n_bytes.sum() == len(text)
    assert capfd.readouterr() == ("", "")


def with_template(folder, template: str) -> None:
    tiny_models.tokenizer(folder, bos_token="<s>", eos_token="</s>")
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    special = [(t, backend.token_to_id(t)) for t in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>").save_pretrained(folder)


@pytest.mark.parametrize(("template", "adds"), [("$A", False), ("<s> $A", True), ("$A </s>", False), ("<s> $A </s>", True)])  # fmt: skip
def test_what_it_puts_in_front_is_the_start_token(tmp_path, template, adds):
    with_template(tmp_path, template)
    tokenizer = read(tmp_path)
    assert tokenizer.adds_start == adds and tokenizer.start == tokenizer.whole.bos_token_id is not None
    assert tokenizer.start not in tokenizer.encode("the rain")[0]


def test_something_else_in_front_is_the_start_token_too(tmp_path):
    with_template(tmp_path, "</s> $A")
    tokenizer = read(tmp_path)
    assert tokenizer.adds_start and tokenizer.start == tokenizer.whole.eos_token_id


def test_none_named_and_none_added_is_none(bytelevel):
    assert (bytelevel.adds_start, bytelevel.start) == (False, None)


def test_equal_tokenizers_have_equal_hashes(tmp_path):
    tiny_models.tokenizer(tmp_path / "a")
    tiny_models.tokenizer(tmp_path / "b")
    with_template(tmp_path / "c", "<s> $A")
    a, b, c = (read(tmp_path / name) for name in "abc")
    assert a.sha256 == b.sha256 != c.sha256
    assert a.vocabulary == tiny_models.VOCABULARY


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    folder = tiny_models.build("llama", tmp_path)
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(UserError, match="the folder has no tokenizer"):
        describe(str(folder), LoadOptions(device="cpu")).load()


def test_a_vocabulary_above_the_embeddings_is_refused(tmp_path):
    folder = tiny_models.build("llama", tmp_path, vocab_size=280)
    with pytest.raises(UserError, match="ids up to 299, the model only 280 embeddings"):
        describe(str(folder), LoadOptions(device="cpu")).load()


def test_a_special_token_above_the_embeddings_is_refused_only_in_a_text(tmp_path):
    folder = tiny_models.build("llama", tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(folder)
    found = describe(str(folder), LoadOptions(device="cpu")).load().tokenizer
    assert found.encode("the rain")[1].sum() == 8
    with pytest.raises(UserError, match=r"'<pad>' \(300\), the model only 300 embeddings"):
        found.encode("the <pad> rain")
