"""Text in, documents of tokens out: what each form of --data gives, and what it says when it cannot."""

import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lengthbench.corpora import hub, source
from lengthbench.corpora.text import Document, Text, Texts, tokenize
from lengthbench.errors import UserError
from lengthbench.models.bytes import ByteTokenizer


def texts_of(found: Texts) -> list[str]:
    return [document.text for document in found.documents]


def names_of(found: Texts) -> list[str]:
    return [document.name for document in found.documents]


def refused(message: str, spec, **options) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        source.read(str(spec), **options)
    assert "\n" not in str(error.value)


# ---- documents and tokens


def test_bytes_of_tokens_sum_to_the_text():
    found = tokenize(Texts("x", (Text("a", "日本語"), Text("b", "abc"), Text("c", ""))), ByteTokenizer())
    assert [(d.name, len(d.tokens), int(d.n_bytes.sum())) for d in found] == [
        ("a", 9, 9),
        ("b", 3, 3),
        ("c", 0, 0),
    ]
    assert found[1].tokens.tolist() == [97, 98, 99]
    assert {d.tokens.dtype for d in found} | {d.n_bytes.dtype for d in found} == {np.dtype(np.int32)}
    assert isinstance(found[0], Document)


class Words(ByteTokenizer):
    """One token a word of ASCII text, white space dropped; `lie` adds a byte that is not there."""

    lie = 0

    def encode(self, text):
        words = text.split()
        spare = len(text) - sum(map(len, words)) if words else 0
        n_bytes = [len(w) for w in words]
        if words:
            n_bytes[-1] += spare + self.lie
        return np.arange(250, 250 + len(words), dtype=np.int64), np.array(n_bytes, np.int64)


def test_a_text_without_tokens_is_kept_and_bytes_that_do_not_add_up_are_our_bug():
    found = tokenize(Texts("x", (Text("blank", "\n\n"), Text("two", "ab cde"))), Words())
    assert [d.n_bytes.tolist() for d in found] == [[], [2, 4]]
    assert found[1].tokens.dtype == np.int32
    liar = Words()
    object.__setattr__(liar, "lie", 1)
    with pytest.raises(AssertionError, match="two: bytes of tokens do not sum to 6"):
        tokenize(Texts("x", (Text("two", "ab cde"),)), liar)


def test_a_token_the_model_does_not_know_is_refused():
    seven = Texts("x", (Text("d", "a b c d e f g"),))
    with pytest.raises(UserError, match="d: the tokenizer bytes gives token 256, the model knows 256"):
        tokenize(seven, Words())


def test_facts_are_those_of_the_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"h\xc3\xa9")
    found = source.read(str(tmp_path / "a.txt"))
    assert found.facts == {
        "n_docs": 1, "n_bytes": 3, "joined": False, "notes": [],
        "sha256": hashlib.sha256(b"\0\0\0\0\0\0\0\x05a.txt\0\0\0\0\0\0\0\x03h\xc3\xa9").hexdigest(),
    }  # fmt: skip
    assert found.name == str(tmp_path / "a.txt") and found.sizes == (3,)


def test_sha256_knows_names_bytes_order_and_borders():
    corpora = [[("a", "xy"), ("b", "z")], [("a", "xz"), ("b", "z")], [("a", "x"), ("b", "yz")], [("ax", "y"), ("b", "z")],
               [("b", "z"), ("a", "xy")], [("c", "xy"), ("b", "z")], [("a", "xy"), ("b", "z"), ("c", "")]]  # fmt: skip
    found = [Texts("x", tuple(Text(*d) for d in documents)).sha256 for documents in corpora]
    assert len(set(found)) == len(corpora)
    assert Texts("other name", (Text("a", "xy"), Text("b", "z")), ("note",)).sha256 == found[0]


# ---- shipped


def test_shipped_novels_are_the_ones_the_readme_lists():
    readme = (source.NOVELS.parent / "README.md").read_text("utf-8")
    listed = dict(reversed(line.split()) for line in readme.splitlines() if re.match(r" {4}[0-9a-f]{64}  ", line))
    assert listed == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in source.NOVELS.iterdir()}
    for name in source.shipped():
        rows = re.findall(r"^\| `(\w+)\.txt` .*\| `" + name + r"`(?: \(held out\))? \|$", readme, re.M)
        assert sorted(rows) == names_of(source.read(name))


def test_held_out_and_training_novels(no_network):
    held_out, training = source.read("novels"), source.read("novels-train")
    assert names_of(held_out) == ["austen_prideprejudice", "doyle_sherlock"]
    assert held_out.sizes == (684428, 561581)  # wc -c
    assert (held_out.facts["n_docs"], held_out.facts["n_bytes"], held_out.notes) == (2, 1246009, ())
    assert len(training.documents) == 7 and not set(names_of(held_out)) & set(names_of(training))
    assert held_out.documents[0].text.startswith("PRIDE AND PREJUDICE\n\nBy Jane Austen\n\nChapter 1\n\nIt is a truth")
    assert set(source.shipped()) == {"novels", "novels-train"}


# ---- text files and folders


def test_text_is_measured_as_it_stands(tmp_path):
    (tmp_path / "a.log").write_bytes(b" one\r\ntwo\rthree\n\n\xe2\x80\xa8 ")
    assert texts_of(source.read(str(tmp_path / "a.log"))) == [" one\r\ntwo\rthree\n\n\u2028 "]


def test_a_byte_order_mark_is_left_out_and_said(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfab")
    found = source.read(str(tmp_path / "a.txt"))
    assert texts_of(found) == ["ab"]
    assert found.notes == (f"{tmp_path}/a.txt: the byte order mark at its start was left out",)


def test_a_packed_text_is_unpacked(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"packed"))
    assert texts_of(source.read(str(tmp_path / "a.txt.gz"))) == ["packed"]


@pytest.mark.parametrize("body, message", [
    (b"", "there is no text in it (documents: 1, all empty)"),
    (b" \n\t\n", "there is no text in it"),
    (b"ab\ncaf\xe9\n", "not UTF-8 text: byte 0xe9 at offset 6 in line 2; if it is text, convert it, for example with iconv -f latin1 -t utf-8"),
    (b"\xef\xbb\xbfa\xff", "byte 0xff at offset 4 in line 1"),
    ("ab\ncd".encode("utf-16"), "byte 0xff at offset 0 in line 1; if it is text, convert it, for example with iconv -f utf-16 -t utf-8"),
    ("ab\ncd".encode("utf-16-le"), "byte 0x00 at offset 1 in line 1; if it is text, convert it, for example with iconv -f utf-16 -t utf-8"),
    (b"\xed\xa0\x80", "byte 0xed at offset 0 in line 1"),
])  # fmt: skip
def test_what_is_no_text(tmp_path, body, message):
    (tmp_path / "a.txt").write_bytes(body)
    refused(message, tmp_path / "a.txt")
    refused(f"--data {tmp_path}/a.txt: ", tmp_path / "a.txt")


def test_a_damaged_archive(tmp_path):
    whole = gzip.compress(b"packed" * 100)
    flipped = whole[:20] + bytes([whole[20] ^ 255]) + whole[21:]
    for name, body in (
        ("cut.txt.gz", whole[:-9]),
        ("plain.txt.gz", b"not packed"),
        ("flipped.txt.gz", flipped),
    ):
        (tmp_path / name).write_bytes(body)
        refused(f"--data {tmp_path}/{name}: cannot be read: ", tmp_path / name)


def test_a_folder_is_read_in_order_of_its_paths(tmp_path):
    for name, body in {
        "b.txt": "B", "a.md": "A", "sub/c.TEXT": "C", "sub/a.txt": "  ", "x.pdf": "no", "y.py": "no", "z": "no", "zz": "no",
        ".hidden.txt": "no", ".git/d.txt": "no",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body)
    found = source.read(str(tmp_path))
    assert [(d.name, d.text) for d in found.documents] == [
        ("a.md", "A"),
        ("b.txt", "B"),
        ("sub/a.txt", "  "),
        ("sub/c.TEXT", "C"),
    ]
    assert found.notes == (
        f"{tmp_path}: not read, as they end otherwise than .txt, .md, .text: 4 (x.pdf, y.py, z, ...)",
        f"{tmp_path}: 1 of 4 documents are empty",
    )
    assert source.read(str(tmp_path)).facts == found.facts
    (tmp_path / "b.txt").write_text("b")
    assert source.read(str(tmp_path)).sha256 != found.sha256


def test_folders_without_text(tmp_path):
    refused(
        f"--data {tmp_path}: the folder has no file ending in .txt, .md, .text; name one file, or hub:FOLDER",
        tmp_path,
    )
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.txt").write_text("\n")
    refused(f"--data {tmp_path}: there is no text in it (documents: 2, all empty)", tmp_path)


@pytest.mark.parametrize(
    "spec",
    ["no_such.txt", "./no/such", "org/name", "", " ", "A whole sentence. " * 40, "a\0b", "~nobody_here/x"],
)
def test_a_path_that_is_not_there(no_network, spec):
    refused(
        f"--data '{spec}': no such file or folder; it takes novels, novels-train, a text file, a folder, a jsonl, ",
        spec,
    )
    refused("file, or hub:NAME[/CONFIG][:SPLIT]", spec)


def test_options_that_do_not_apply_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    refused(
        "--column body: only jsonl, ndjson, json, csv, tsv, parquet have columns, 'novels' has none",
        "novels",
        column="body",
    )
    refused("--column body: only", tmp_path / "a.txt", column="body")
    refused("--split test: only hub: data sets have splits, 'novels' has none", "novels", split="test")
    refused("--join maybe: it is one of auto, always, never", "novels", join="maybe")


# ---- rows


ROWS = [{"text": "one", "n": 1}, {"text": "zwei, \"2\"\nlines", "n": 2}, {"text": "NA", "n": 3}, {"text": "三", "n": 4}]  # fmt: skip


def write_rows(path: Path) -> None:
    import pandas as pd

    table, kind = pd.DataFrame(ROWS), path.name.removesuffix(".gz").rsplit(".")[-1]
    if kind in ("jsonl", "ndjson"):
        table.to_json(path, orient="records", lines=True)
    elif kind == "json":
        path.write_text(json.dumps({"version": 2, "rows": ROWS} if "object" in path.name else ROWS))
    elif kind == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")


@pytest.mark.parametrize(
    "name",
    ["a.jsonl", "a.ndjson", "a.JSONL.gz", "a.json", "object.json", "a.csv", "a.csv.gz", "a.tsv", "a.parquet"],
)
def test_every_kind_gives_the_same_rows(tmp_path, name):
    write_rows(tmp_path / name.lower())
    path = (tmp_path / name.lower()).rename(tmp_path / name)
    found = source.read(str(path))
    assert texts_of(found) == [row["text"] for row in ROWS]
    facts = {k: v for k, v in found.facts.items() if k != "sha256"}
    # 3 + 15 + 2 + 3 bytes
    assert facts == {"n_docs": 4, "n_bytes": 23, "n_rows": 4, "column": "text", "joined": False, "notes": []}


@pytest.mark.parametrize("name, numbers", [
    ("a.jsonl", "line 1|line 2|line 3|line 4"),
    ("a.json", "row 1|row 2|row 3|row 4"),
    ("a.csv", "line 2|line 3|line 5|line 6"),  # the header is line 1, the second row takes two lines
    ("a.parquet", "row 1|row 2|row 3|row 4"),
])  # fmt: skip
def test_rows_are_named_by_where_they_stand(tmp_path, name, numbers):
    write_rows(tmp_path / name)
    assert names_of(source.read(str(tmp_path / name))) == numbers.split("|")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet"])
def test_numbers_and_missing_columns(tmp_path, name):
    path = tmp_path / name
    write_rows(path)
    refused(f"--data {path}: no column 'body'; it has: text, n; name one with --column", path, column="body")
    number = "column 'n' holds numbers, not text" if name[2:] in ("csv", "tsv") else "'n' is not text in 4 of 4 rows: "
    refused(f"--data {path}: {number}", path, column="n")


@pytest.mark.parametrize("name", ["TEXT", "content"])
def test_another_spelling_is_not_guessed(tmp_path, name):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({name: "x"}))
    refused(f"--data {path}: no column 'text'; it has: {name}; name one with --column", path)
    assert texts_of(source.read(str(path), column=name)) == ["x"]


def test_rows_that_are_no_text_are_named_by_their_lines(tmp_path):
    rows = [{"text": "x"}] * 16
    rows[6], rows[8], rows[9] = {"body": "x"}, {"text": None}, {"text": 7}
    rows[10:13] = [{"text": ["x"]}, {"text": True}, {"text": {}}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    refused(
        f"--data {path}: 'text' is not text in 6 of 16 rows: line 7 (no field), line 9 (null), line 10 (int), line 11 (list), "
        "line 12 (bool) and 1 more; mend or remove them", path,
    )  # fmt: skip


def test_half_a_surrogate_pair_is_refused_a_whole_one_and_nul_are_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "ok"}\n{"text": "x\\ud83d"}\n')
    refused(f"--data {path}: 'text' is not text in 1 of 2 rows: line 2 (half a surrogate pair)", path)
    path.write_text('{"text": "\\ud83d\\ude00"}\n{"text": "a\\u0000b"}\n')
    found = source.read(str(path))
    assert texts_of(found) == ["😀", "a\0b"] and found.sizes == (4, 3)


def test_only_a_newline_ends_a_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\u2028b\u0085c"}\n{"text": "d"}\n')
    assert [(d.name, d.text) for d in source.read(str(path)).documents] == [
        ("line 1", "a\u2028b\u0085c"),
        ("line 2", "d"),
    ]


def test_blank_lines_are_no_rows_and_empty_texts_are(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\r\n\r\n{"text": ""}\r\n\n')
    found = source.read(str(path))
    assert [(d.name, d.text) for d in found.documents] == [("line 1", "a"), ("line 3", "")]
    assert found.notes == (f"{path}: 1 of 2 documents are empty",)
    (tmp_path / "a.csv").write_text('text,n\n"",1\n\nb,2\n')
    assert [(d.name, d.text) for d in source.read(f"{tmp_path}/a.csv").documents] == [
        ("line 2", ""),
        ("line 4", "b"),
    ]


@pytest.mark.parametrize("name, body, message", [
    ("a.jsonl", '{"text": "x"}\n' * 11 + '{"text": "x"\n{"text": "x"}\n', "line 12, column 13: not JSON: Expecting ',' delimiter"),
    ("a.jsonl", '{"text": "x"}\n[1]\n', "line 2 is no JSON object but a list"),
    ("a.jsonl", "\n\n", "there are no rows in it"),
    ("a.jsonl", '{"text": ' + "[" * 200_000, "line 1"),
    ("a.jsonl", '{"text": ' + "1" * 5000 + "}", "line 1: JSON that cannot be read: "),
    ("a.json", '[\n{"text": "x"},\n{"text" "x"}]', "line 3, column 9: not JSON: Expecting ':' delimiter"),
    ("a.json", '{"text": "x"}\n{"text": "y"}\n', "line 2, column 1: not JSON: Extra data; a file with one object a line is to be named .jsonl"),
    ("a.json", '{"text": "x"}', "it must be a list of objects, or an object with exactly one such list"),
    ("a.json", '{"a": [{"text": "x"}], "b": []}', "with exactly one such list"),
    ("a.json", '["x", "y"]', "it must be a list of objects"),
    ("a.json", "7", "it must be a list of objects"),
    ("a.json", "[]", "there are no rows in it"),
    ("a.csv", "", "there are no rows in it"),
    ("a.csv", "text,n\n", "there are no rows in it"),
    ("a.csv", "text,n\na,1\nb,2,3\n", "line 3: 3 cells, the header has 2"),
    ("a.csv", 'text,n\na,1\n"b,2\nc,3\n', "line 3: not csv: unexpected end of data"),
    ("a.csv", "n,text\n1,a\n2\n", "'text' is not text in 1 of 2 rows: line 3 (no field)"),
    ("a.csv", "text,text\na,b\n", "two columns are called 'text'"),
    ("a.csv", "text,n\n,1\n,2\n", "there is no text in it (documents: 2, all empty)"),
    ("a.csv", "text\nx\0y\n", "byte 0x00 at offset 6 in line 2"),
    ("a.parquet", "PAR1", "not parquet: "),
])  # fmt: skip
def test_files_of_rows_that_cannot_be_read(tmp_path, name, body, message):
    (tmp_path / name).write_text(body, newline="")
    with pytest.raises(UserError) as error:
        source.read(f"{tmp_path}/{name}")
    assert str(error.value).startswith(f"--data {tmp_path}/{name}: ") and message in str(error.value)
    assert "\n" not in str(error.value)


def test_bytes_that_are_not_utf8_in_rows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x"}\n{"text": "\xe9"}\n')
    refused("not UTF-8 text: byte 0xe9 at offset 24 in line 2", tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "x"}\n')
    assert texts_of(source.read(f"{tmp_path}/b.jsonl")) == ["x"]


def test_parquet_nulls_and_lists(tmp_path):
    import pandas as pd

    path = tmp_path / "a.parquet"
    pd.DataFrame({"text": ["a", None], "tokens": [["x"], ["y", "z"]]}).to_parquet(path)
    refused("'text' is not text in 1 of 2 rows: row 2 (null)", path)
    refused("'tokens' is not text in 2 of 2 rows: row 1 (list), row 2 (list)", path, column="tokens")


def test_a_cell_longer_than_the_csv_module_allows(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "x" * 200_000)
    assert source.read(f"{tmp_path}/a.csv").sizes == (200_000,)


# ---- joining


@pytest.mark.parametrize("sizes, longest, join, together", [
    ((10, 10, 30), 20, "auto", False),  # 30 of 50 bytes stand in long rows
    ((10, 10, 30), 30, "auto", True),  # none is longer than 30
    ((20, 10, 10), 15, "auto", False),  # exactly half is not less than half
    ((19, 10, 10), 15, "auto", True),  # 19 of 39
    ((10, 10, 30), 1, "always", True),
    ((10, 10, 30), 1000, "never", False),
    ((10, 10, 30), None, "auto", False),
    ((10,), 1000, "auto", False),
])  # fmt: skip
def test_rows_are_joined_where_most_are_short(tmp_path, sizes, longest, join, together):
    path = tmp_path / "a.jsonl"
    rows = [letter * n for letter, n in zip("abc", sizes, strict=False)]
    path.write_text("\n".join(json.dumps({"text": row}) for row in rows))
    found = source.read(str(path), join=join, longest=longest)
    assert texts_of(found) == (["\n\n".join(rows)] if together else rows)
    assert found.facts["joined"] is together and found.facts["n_rows"] == len(rows)
    assert (names_of(found) == ["joined"]) is together


def test_joining_is_said(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": "日本"}) for _ in range(1234)))
    note = f"{path}: 1,234 short rows were joined; --join never keeps them apart"
    found = source.read(str(path), longest=6)  # six bytes, so no row is longer
    assert found.notes == (note,) and found.facts["notes"] == [note]
    assert found.facts["n_bytes"] == 1234 * 6 + 1233 * 2
    assert source.read(str(path), longest=5).notes == ()
    assert source.read(str(path), join="always").notes == (f"{path}: 1,234 documents were joined",)


def test_files_are_joined_only_when_told(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("b")
    assert texts_of(source.read(str(tmp_path), longest=1000)) == ["a\n", "b"]
    assert texts_of(source.read(str(tmp_path), join="always")) == ["a\n\n\nb"]


# ---- the datasets library


@pytest.fixture
def folder(tmp_path, monkeypatch, no_network):
    """A data set of two splits in a folder; the library's cache goes to tmp_path."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "set"
    path.mkdir()
    (path / "train.jsonl").write_text('{"text": "c", "body": "y"}\n')
    (path / "test.jsonl").write_text('{"text": "a", "body": "x"}\n{"text": "b", "body": null}\n')
    return path


def test_a_split_is_chosen_and_recorded(folder):
    found = source.read(f"hub:{folder}")
    assert texts_of(found) == ["a", "b"] and names_of(found) == ["row 1", "row 2"]
    assert found.notes == (f"hub:{folder}: the split 'test' was read; --split names another",)
    facts = {k: found.facts[k] for k in ("dataset", "config", "split", "column", "n_rows", "n_bytes", "joined")}
    assert facts == {
        "dataset": str(folder), "config": None, "split": "test", "column": "text", "n_rows": 2, "n_bytes": 2, "joined": False,
    }  # fmt: skip
    for named in (source.read(f"hub:{folder}:train"), source.read(f"hub:{folder}", split="train")):
        assert (texts_of(named), named.facts["split"], named.notes) == (["c"], "train", ())
    assert texts_of(source.read(f"hub:{folder}", longest=512)) == ["a\n\nb"]


def test_test_comes_before_validation_and_a_lone_split_is_taken(folder):
    (folder / "validation.jsonl").write_text('{"text": "v", "body": "x"}\n')
    assert source.read(f"hub:{folder}").facts["split"] == "test"
    (folder / "test.jsonl").unlink()
    assert source.read(f"hub:{folder}").facts["split"] == "validation"
    (folder / "validation.jsonl").unlink()
    assert source.read(f"hub:{folder}").facts["split"] == "train"


def test_what_a_data_set_refuses(folder):
    spec = f"hub:{folder}"
    refused(f"--data {spec}: no split 'tset'; it has: train, test; name one with --split", spec, split="tset")
    refused(f"--data {spec}:tset: no split 'tset'; it has: train, test", f"{spec}:tset")
    refused(f"--data {spec}:test: it names the split 'test', --split says 'train'", f"{spec}:test", split="train")
    refused(
        f"--data {spec} (split test): no column 'txt'; it has: text, body; name one with --column",
        spec,
        column="txt",
    )
    refused(f"--data {spec} (split test): 'body' is not text in 1 of 2 rows: row 2 (null)", spec, column="body")
    refused(f"{folder / 'train.jsonl'}: is a file; name it without hub:", f"hub:{folder}/train.jsonl")
    refused("write hub:NAME[/CONFIG][:SPLIT]", "hub:")
    refused("hub:./no_such: no_such: no such folder", "hub:./no_such")


def test_several_splits_and_none_to_prefer(folder):
    from datasets import Dataset, DatasetDict

    two = DatasetDict({name: Dataset.from_dict({"text": [name]}) for name in ("english", "french")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.load_dataset", lambda *_: two)
        refused(
            "several splits, none called test or validation; it has: english, french; name one with --split",
            "hub:org/name",
        )
        patch.setattr(hub, "_offline", lambda: True)
        found = source.read("hub:org/name/cfg:french")
    assert texts_of(found) == ["french"] and found.facts["config"] == "cfg"
    assert found.notes == ("hub:org/name/cfg:french: offline, so the copy in the cache was read",)


def test_a_loading_script_and_an_empty_folder(tmp_path, folder):
    (tmp_path / "old").mkdir()
    refused(f"--data hub:{tmp_path}/old: cannot be loaded: The directory at ", f"hub:{tmp_path}/old")
    (tmp_path / "old" / "old.py").write_text("import datasets")
    refused(f"{tmp_path}/old needs a loading script, which datasets runs no more", f"hub:{tmp_path}/old")
    (folder / "test.jsonl").write_text('{"text": "a"}\n{"text": \n')
    refused(f"--data hub:{folder}: cannot be loaded: ", f"hub:{folder}")


@pytest.mark.parametrize("kind, text, message", [
    ("DatasetNotFoundError", "Dataset 'o/n' is a gated dataset on the Hub. You must be authenticated.", "o/n is gated: accept its terms on the hub"),
    ("DatasetNotFoundError", "Dataset 'o/n' doesn't exist on the Hub or cannot be accessed.", "the hub has no data set o/n, or it is not open to you"),
    ("ConnectionError", "Couldn't reach 'o/n' on the Hub (ConnectTimeout)", "the hub cannot be reached for o/n"),
    ("ValueError", "Config name is missing.\nPlease pick one among the available configs: ['a', 'b']", "Please pick one among the available configs: ['a', 'b']"),
    ("ValueError", "a description of a subscription", "cannot be loaded: a description of a subscription"),
])  # fmt: skip
def test_what_the_library_raises_becomes_one_line(monkeypatch, kind, text, message):
    import builtins

    import datasets.exceptions

    def load(*_):
        raise (getattr(datasets.exceptions, kind, None) or getattr(builtins, kind))(text)

    monkeypatch.setattr("datasets.load_dataset", load)
    refused(message, "hub:o/n")


def test_the_library_is_silent_and_left_as_it_was(folder, capfd):
    import datasets

    assert not datasets.are_progress_bars_disabled()
    before = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity_info()
    source.read(f"hub:{folder}")
    after = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity(before)
    assert capfd.readouterr() == ("", "")
    assert not datasets.are_progress_bars_disabled() and after == datasets.logging.INFO


def test_offline_and_not_in_the_cache(tmp_path):
    """In a process of its own: the library reads HF_HUB_OFFLINE once, when it is imported."""
    code = (
        "import time; from lengthbench.corpora import source; import datasets; begun = time.monotonic()\n"
        "try: source.read('hub:org/name')\n"
        "except Exception as error: print(type(error).__name__, error, time.monotonic() - begun < 5, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(source.__file__).parents[2],
        env={"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    expected = (
        "--data hub:org/name: offline (HF_HUB_OFFLINE is set) and org/name is not in the cache; load it once online"
    )
    assert done.stdout == f"UserError|{expected}|True\n", done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("spec, expected", [
    ("hub:wikitext", ("wikitext", None, None)),
    ("hub:name:split", ("name", None, "split")),
    ("hub:org/name", ("org/name", None, None)),
    ("hub:org/name:test", ("org/name", None, "test")),
    ("hub:org/name/config", ("org/name", "config", None)),
    ("hub:org/name/config:test", ("org/name", "config", "test")),
    ("hub:org/name:", ("org/name", None, None)),
])  # fmt: skip
def test_names_of_the_hub(spec, expected):
    assert hub.parse(spec) == expected
