"""A user's own file.py: run as it stands, and every mistake in it said with its line."""

import math
import os
import sys

import numpy as np
import pytest

from lengthbench import files, registry
from lengthbench.errors import OutOfMemory, UserError
from lengthbench.model import LoadOptions
from lengthbench.models import custom
from lengthbench.scheme import Shape
from lengthbench.trials import Trial

SHAPE = Shape(32, 4, 128)
SCHEME = "from lengthbench.scheme import Scheme\nclass Own(Scheme):\n    def __init__(self, shape, *, {}):\n"


@pytest.mark.parametrize("body, said", [
    ("x = 1\ndef make(:\n    pass\n", "line 2: SyntaxError: invalid syntax; mend the file"),
    ("x = 1\n  y = 2\n", "line 2: IndentationError: unexpected indent"),
    ("x = 1\n\nnowhere\n", "line 3: NameError: name 'nowhere' is not defined"),
    ("import no_such_package\n", "line 1: ModuleNotFoundError: No module named 'no_such_package'"),
    ("def f():\n    return {}['a']\nf()\n", "line 2: KeyError: 'a'"),
    ("import json\n\njson.loads('{')\n", "line 3: JSONDecodeError: Expecting property name"),  # the user's line, not json's
    ("raise ValueError('one\\ntwo')\n", "line 1: ValueError: one two; mend the file"),
    ("assert 1 > 2\n", "line 1: AssertionError; mend the file"),
    ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    ("s = 'caf\xe9'\n".encode("latin1"), "SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xe9"),
    (b"x = 1\0\n", "source code string cannot contain null bytes"),
])  # fmt: skip
def test_a_mistake_in_the_file_is_one_line(tmp_path, body, said):
    path = tmp_path / "own.py"
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    for load in (
        lambda: custom.describe(f"{path}:make", LoadOptions()),
        lambda: registry.load(str(path), SHAPE),
    ):
        with pytest.raises(UserError) as error:
            load()
        assert str(error.value).startswith(str(path)) and said in str(error.value)
        assert "\n" not in str(error.value)


def test_a_mistake_in_a_file_that_it_reads_is_in_that_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_neighbour.py").write_text("\n\n)\n")
    (tmp_path / "own.py").write_text("import broken_neighbour\n")
    with pytest.raises(UserError, match=r"broken_neighbour\.py, line 3: SyntaxError: unmatched '\)'"):
        files.module(tmp_path / "own.py")


def test_a_mistake_while_the_model_or_the_scheme_is_built(tmp_path):
    path = tmp_path / "own.py"
    path.write_text("def make():\n    width = 3\n    return width / 0\n")
    with pytest.raises(UserError, match=r"own\.py, line 3: ZeroDivisionError: division by zero; mend the file"):
        custom.describe(f"{path}:make", LoadOptions())
    path.write_text(SCHEME.format("size=4") + "        super().__init__(shape)\n        self.far = nothing\n")
    with pytest.raises(UserError, match=r"own\.py, line 5: NameError: name 'nothing' is not defined"):
        registry.load(f"{path}:size=3", SHAPE)


@pytest.mark.parametrize("name, said", [
    ("nowhere.py:make", "nowhere.py: no such file"),
    ("a.py/own.py:make", "a.py/own.py: no such file"),
    (".py:make", ".py: no such file"),
    ("folder.py:make", "folder.py: cannot be read: Is a directory"),
    ("x" * 300 + ".py:make", ": cannot be read: File name too long"),
    ("own.py:mkae", "own.py has no function 'mkae'"),
    ("own.py:number", "own.py has no function 'number'"),
])  # fmt: skip
def test_what_is_not_in_the_file(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "own.py").write_text("number = 3\ndef make():\n    return None\n")
    with pytest.raises(UserError) as error:
        custom.describe(name, LoadOptions())
    assert said in str(error.value)


OWN = """
import torch

class Flat(torch.nn.Embedding):
    def __init__(self, columns):
        super().__init__(256, columns)
        torch.nn.init.zeros_(self.weight)

def flat(): return Flat(256)
def padded(): return Flat(300)
def narrow(): return Flat(128)
def hidden():
    model = Flat(256)
    model.forward = lambda tokens: (torch.zeros(1),)
    return model
def nothing(): pass
def number(): return 3
"""


@pytest.mark.parametrize("function, said", [
    ("narrow", "for tokens [1, 40] it returned [1, 40, 128]; the logits must be [1, 40, 256], one for each token of the tokenizer bytes"),
    ("hidden", "for tokens [1, 40] it returned tuple; the logits must be [1, 40, 256]"),
    ("nothing", "got NoneType; a model is a torch module, or has score(trials) and tokenizer"),
    ("number", "got int; a model is"),
])  # fmt: skip
def test_what_is_no_model_is_refused(tmp_path, function, said):
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(UserError) as error:
        scores(tmp_path, function)
    assert said in str(error.value)


@pytest.mark.parametrize("function", ["flat", "padded"])
def test_equal_logits_cost_the_logarithm_of_the_vocabulary(tmp_path, function):
    (tmp_path / "own.py").write_text(OWN)
    assert scores(tmp_path, function) == pytest.approx([math.log(256)] * 40, rel=1e-6)  # 256 bytes, not 300 columns


WRONG = """
import torch
from lengthbench.errors import OutOfMemory

class Short(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = torch.nn.Embedding(32, 256)
    def forward(self, tokens):
        return self.positions(torch.arange(tokens.shape[1])[None])

class Scorer:
    def __init__(self, answer): self.answer = answer
    def score(self, trials): return self.answer(trials)
    def extra_bytes(self, n_fed, batch): return self.bytes_a_token * n_fed

def forward(): return Short()
def raises(): return Scorer(lambda trials: trials[0].tokenz)
def empty(): return Scorer(lambda trials: [])
def nothing(): return Scorer(lambda trials: None)
def full():
    def answer(trials): raise OutOfMemory("no room")
    return Scorer(answer)
"""


@pytest.mark.parametrize("function, said", [
    ("forward", "own.py, line 10: IndexError: index out of range in self; mend the file"),
    ("raises", "own.py, line 18: AttributeError: 'Trial' object has no attribute 'tokenz'; mend the file"),
    ("empty", "own.py: ValueError: score(trials) must return Scores for each trial, with a loss for each scored token"),
    ("nothing", "own.py: TypeError: 'NoneType' object is not iterable"),
])  # fmt: skip
def test_a_mistake_while_it_scores(tmp_path, function, said):
    (tmp_path / "own.py").write_text(WRONG)
    with pytest.raises(UserError) as error:
        scores(tmp_path, function)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_mistake_in_its_estimate_of_memory_and_a_batch_that_is_too_big(tmp_path):
    (tmp_path / "own.py").write_text(WRONG)
    model = custom.describe(f"{tmp_path}/own.py:empty", LoadOptions()).load()
    with pytest.raises(
        UserError, match=r"own\.py, line 15: AttributeError: 'Scorer' .* 'bytes_a_token'; mend the file"
    ):
        model.extra_bytes(8, 1)
    with pytest.raises(OutOfMemory, match="no room"):  # no mistake: the engine halves the batch
        scores(tmp_path, "full")


def test_a_mistake_while_it_measures_is_one_line(run, tmp_path):
    (tmp_path / "own.py").write_text(WRONG)
    (tmp_path / "book.txt").write_text("Night was dark. " * 200)
    ran = run("ppl", "--model", "own.py:forward", "--data", "book.txt", "--lengths", "16..64", "--out", "r", "-q")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "lengthbench: own.py, line 10: IndexError: index out of range in self; mend the file\n"


def test_an_object_of_a_notebook_keeps_its_traceback():
    class Broken:
        def score(self, trials):
            raise KeyError("a")

    with pytest.raises(KeyError):
        custom.card_of(Broken(), "Broken", LoadOptions()).load().score([])


def scores(folder, function) -> list[float]:
    model = custom.describe(f"{folder}/own.py:{function}", LoadOptions()).load()
    return model.score([Trial(np.arange(41, dtype=np.int32), np.arange(1, 41))])[0].nll.tolist()


def test_the_file_is_run_as_it_stands_and_takes_no_name_from_others(tmp_path):
    """Two versions of one size within one second; a name of the standard library; a dataclass of its own."""
    import random

    path = tmp_path / "random.py"
    found = []
    for value in (1, 2):
        path.write_text(
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            f"@dataclass\nclass Size:\n    n: int = {value}\n"
        )
        os.utime(path, (0, 0))
        found.append(files.module(path).Size().n)
    assert found == [1, 2] and sys.modules["random"] is random
    assert [p.name for p in tmp_path.iterdir()] == ["random.py"]  # nothing is written beside it


def test_a_scheme_may_resolve_its_parameters(tmp_path):
    """`original=0` is the shape's training length; what is recorded is the resolved value."""
    path = tmp_path / "stretched.py"
    path.write_text(
        SCHEME.format("factor: float = 2.0, original: int = 0")
        + "        super().__init__(shape)\n"
        + "        self.params = {'factor': factor, 'original': original or shape.train_length}\n"
    )
    assert registry.load(f"{path}:factor=4", SHAPE).params == {"factor": 4.0, "original": 128}
    assert registry.load(f"{path}:original=64", SHAPE).params == {"factor": 2.0, "original": 64}
    path.write_text(SCHEME.format("factor: float = 2.0, original: int = 0") + "        super().__init__(shape)\n")
    scheme = registry.load(f"{path}:factor=4", SHAPE)
    assert scheme.name == "stretched" and scheme.params == {"factor": 4.0, "original": 0}


@pytest.mark.parametrize("text, said", [
    ("size=4.5", "size=4.5 is not a whole number; the default is size=4"),
    ("rate=nan", "rate=nan is not finite; the default is rate=0.5"),
    ("rate=1e999", "rate=1e999 is not finite"),
    ("wide=yes", "wide=yes is not true or false; the default is wide=False"),
    ("other=1", "'other' cannot be set: its default in __init__ is neither a number nor a text"),
    ("size=4,size=5", "size is given twice"),
])  # fmt: skip
def test_values_that_are_not_of_the_defaults_kind(tmp_path, text, said):
    path = tmp_path / "own.py"
    path.write_text(SCHEME.format("size=4, rate=0.5, wide=False, other=None") + "        super().__init__(shape)\n")
    with pytest.raises(UserError) as error:
        registry.load(f"{path}:{text}", SHAPE)
    assert said in str(error.value)
    params = registry.load(f"{path}:size=9,wide=True,rate=2", SHAPE).params
    assert params == {"size": 9, "rate": 2.0, "wide": True, "other": None}
    assert registry.load(f"{path}:wide=false", SHAPE).params["wide"] is False


def test_a_parameter_needs_a_default_and_the_file_one_scheme(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(SCHEME.format("size") + "        super().__init__(shape)\n")
    with pytest.raises(UserError, match="'size' has no default in __init__; give it one"):
        registry.load(f"{path}:size=3", SHAPE)
    path.write_text("from lengthbench.schemes.alibi import Alibi\n")
    with pytest.raises(UserError, match="must define exactly one subclass of Scheme, it has 0"):
        registry.load(str(path), SHAPE)
    path.write_text("from lengthbench.schemes.alibi import Alibi\nclass Steep(Alibi):\n    pass\n")
    assert registry.load(str(path), SHAPE).name == "own"  # what it imports is not what it defines
