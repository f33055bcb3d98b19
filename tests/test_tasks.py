"""Task files: what is shipped, what one's own may hold, and what is said of a file that is wrong."""

import json
import re

import pytest

from lengthbench import tasks
from lengthbench.errors import UserError
from lengthbench.retrieval import jsonl, rows
from lengthbench.training import recall

ENGLISH = {
    "recall", "passkey", "needle", "multikey", "multivalue", "multiquery", "kv", "trace", "common-words",
    "frequent-words", "copy", "documents", "contract", "conversation", "code", "summary",
}  # fmt: skip
OTHERS = {f"{task}.{language}" for task in ("needle", "documents", "contract") for language in ("ja", "fr", "zh")}
OWN = """
description = "a word in a text"
version = 1
language = "en"
question = " Which word?"
answer = " {word}"
filler = [" Nothing."]

[[evidence]]
text = " The word is {word}."

[draw.word]
letters = 6
"""


def refused(tmp_path, old: str, new: str, message: str) -> None:
    assert old in OWN
    path = tmp_path / "my.toml"
    path.write_text(OWN.replace(old, new, 1), "utf-8")
    with pytest.raises(UserError, match=re.escape(message)) as error:
        tasks.read(path)
    assert "\n" not in str(error.value)


def test_every_shipped_task_reads_and_is_described():
    named = tasks.names()
    assert set(named) == ENGLISH | OTHERS
    for name, description in named.items():
        task = tasks.read(name)
        assert task.name == name and task.description == description and "\n" not in description
        assert task.language == (name.split(".")[1] if "." in name else "en")


def test_recall_has_the_wordings_that_the_family_was_trained_on():
    task = tasks.read("recall")
    rows_ = task.draw["wording"].lists[0]
    assert [(row["statement"], row["question"]) for row in rows_] == list(recall.WORDINGS)
    assert (task.draw["key"].kind, task.draw["key"].size) == ("digits", 5)
    assert task.evidence[0].text == " {wording.statement}{key}."


def test_ones_own_file_is_read(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(OWN, "utf-8")
    task = tasks.read(path)
    assert (task.name, task.evidence[0].at, task.haystack.source, task.n_wrong) == ("my", "depth", "prose", 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "version = 1",
            'version = 1\nfilller = ["x"]',
            "my.toml: unknown key 'filller'; the keys are: description, version",
        ),
        ("version = 1\n", "", "the key 'version' is missing"),
        ("version = 1", 'version = "1"', "version must be a whole number, it is text ('1')"),
        ("version = 1", "version = true", "version must be a whole number, it is true or false (True)"),
        ("version = 1", "version = 0", "version and n_wrong are 1 or more, not 0 and 4"),
        ('filler = [" Nothing."]', "filler = [3]", "filler: 3 must be text, it is a whole number (3)"),
        ('filler = [" Nothing."]', "filler = []", "filler: it needs at least one sentence"),
        ("{word}.", "{wrod}.", "no variable {wrod} for 'The word is {wrod}.'; there are: word"),
        ("{word}.", "{word.first}.", "no variable {word.first}"),
        ('answer = " {word}"', 'answer = " yes"', "answer ' yes' holds no variable"),
        ("letters = 6", "letters = 0", "draw.word: letters = 0: a number of characters, 1 to 64"),
        ("letters = 6", "letter = 6", "draw.word: unknown key 'letter'; the keys are: digits, letters"),
        (
            "letters = 6",
            "letters = 6\ndigits = 3",
            "exactly one of digits, letters, capitals, hex, choice, parts, words",
        ),
        ("letters = 6", "choice = []", "draw.word: choice: it needs a list with entries in it"),
        ("letters = 6", "choice = [1]", "draw.word: choice: 1 must be text"),
        (
            '{word}."',
            '{word}."\nat = "middle"',
            "evidence 1: at = 'middle': it is one of depth, spread, scatter, or a number",
        ),
        ('{word}."', '{word}."\nat = 1.5', "evidence 1: at = 1.5"),
        ('{word}."', '{word}."\ncount = 2', "count is for context only"),
        ('{word}."', '{word}."\nplace = 1', "evidence 1: unknown key 'place'; the keys are: text, at, count"),
        (
            "[draw.word]",
            '[haystack]\nsource = "novels"\n[draw.word]',
            "source = 'novels': it is one of prose, units, rows",
        ),
        ("[draw.word]", '[haystack]\nsource = "units"\n[draw.word]', "haystack.units are needed"),
        ("version = 1", 'version = 1\nscoring = ["f1"]', "scoring 'f1': it is one of exact, contains"),
        ("version = 1", 'version = 1\ndecoy = ["a", "b"]', "decoy has 2 texts, evidence 1"),
        ("version = 1", 'version = 1\ndocuments = "my.jsonl"', "documents = 'my.jsonl': no such file beside the task"),
        ("version = 1", "version = ", "my.toml: not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, message):
    refused(tmp_path, old, new, message)


def test_a_task_that_is_not_there_lists_those_that_are(tmp_path):
    with pytest.raises(
        UserError, match=r"--task needel: there is none of that name; there are: code, .* or a file.toml"
    ):
        tasks.read("needel")
    with pytest.raises(UserError, match="cannot be read: No such file"):
        tasks.read(tmp_path / "no.toml")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"text": 3}', "line 3 ('text' is not text)"),
        ('{"question": "a", "answer": "b"}', "line 3 (no 'text')"),
        ('{"text": "a", "question": "b"}', "line 3 (question and answer go together)"),
        ('{"text": "a", "txt": "b"}', "line 3 (unknown field 'txt'; the fields are: text, question, answer, wrong)"),
        ('{"text": "a", "question": "q", "answer": "b", "wrong": "c"}', "line 3 ('wrong' is not a list of texts)"),
        ('{"text": "a", "question": "q", "answer": "b", "wrong": ["b"]}', "line 3 (the answer is also among 'wrong')"),
        ('{"text"', "line 3: not JSON"),
        ("[1]", "line 3 is no JSON object but a list"),
    ],
)
def test_bad_documents_are_named_by_line(tmp_path, row, message):
    path = tmp_path / "my.jsonl"
    path.write_text('{"text": "a", "question": "q", "answer": "b"}\n\n' + row + "\n", "utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        rows.read(path)


def test_documents_without_a_question_are_refused(tmp_path):
    path = tmp_path / "my.jsonl"
    path.write_text('{"text": "a"}\n', "utf-8")
    with pytest.raises(UserError, match="no row has a question and an answer"):
        rows.read(path)


def test_prompts_of_others_are_read_as_ruler_and_lm_eval_write_them(tmp_path):
    path = tmp_path / "theirs.jsonl"
    ruler = {"index": 0, "input": "A number: 42. Which?", "outputs": ["42"], "length": 4096, "answer_prefix": " It is"}
    harness = {"input": "Both?", "outputs": [1, "two"], "max_length": 8192, "gen_prefix": "They are"}
    path.write_text(f"{json.dumps(ruler)}\n{json.dumps(harness)}\n", "utf-8")
    assert jsonl.read(path) == (
        jsonl.Given(1, "A number: 42. Which?", ("42",), 4096, " It is"),
        jsonl.Given(2, "Both?", ("1", "two"), None, "They are"),
    )
    path.write_text('{"input": "x", "outputs": []}\n{"prompt": "x", "outputs": ["y"]}\n', "utf-8")
    with pytest.raises(
        UserError, match=r"2 of 2 rows .*line 1 \('outputs' is not .*line 2 \(no text in 'input'; it has: p"
    ):
        jsonl.read(path)
