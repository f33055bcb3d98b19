"""A reference changes only by `accept`, as a whole, and after the difference was shown; runs are listed and shown."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import read_csv

from lengthbench.run import accept as accepting
from lengthbench.run import listing

NAME = "oracle-constant-nats-1"


@pytest.fixture
def measured(run):
    """`measured(2, out)`: a run of a model of that many nats for every token."""

    def call(nats: float, out: str, *more: str) -> Path:
        ran = run("ppl", "-m", f"oracle:constant:nats={nats}", "--lengths", "64,128", "--max-tokens", "1024", "--out", out, "-q",
                  *more)  # fmt: skip
        assert ran.code == 0, ran.err
        return Path(out)

    return call


def test_accepted_only_after_the_difference_was_shown(run, measured):
    old, new = measured(1, "old"), measured(1.5, "new")
    ran = run("accept", old, "--as", "tiny")
    assert ran.code == 2 and "results/reference/tiny is new" in ran.out
    assert "nobody is here to ask; look at the difference above and give --yes" in ran.err
    assert not Path("results").exists()
    assert run("accept", old, "--as", "tiny", "--yes").code == 0
    reference = Path("results/reference/tiny")
    (reference / "stray.csv").write_text("left from before")
    ran = run("accept", new, "--as", "tiny")
    assert ran.code == 2 and "+64.9 %" in ran.out and "failed: 2 worse" in ran.out
    assert read_csv(reference / "ppl.csv")[0]["nll"] == "1.0"
    ran = run("accept", new, "--as", "tiny", "--yes")
    assert ran.code == 0 and "+64.9 %" in ran.out and ran.out.endswith("reference: results/reference/tiny\n")
    assert not (reference / "stray.csv").exists() and list(reference.parent.iterdir()) == [reference]
    for file in ("ppl.csv", "blocks.csv", "positions.csv", "plots/perplexity.png"):
        assert (reference / file).read_bytes() == (new / file).read_bytes()
    stated = json.loads((reference / "manifest.json").read_text())
    assert stated.pop("accepted") >= stated["end"] and stated == json.loads((new / "manifest.json").read_text())
    assert run("check", new, "--baseline", reference).code == 0


def test_asked_on_a_terminal(run, measured, monkeypatch):
    import typer

    old = measured(1, "old")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("lengthbench.cli.accept.confirm", lambda text: False)
    ran = run("accept", old, "--as", "tiny")
    assert ran.code == 0 and "stays as it was" in ran.err and not Path("results").exists()
    monkeypatch.setattr(
        "lengthbench.cli.accept.confirm", lambda text: text == "Make old the reference results/reference/tiny?"
    )
    assert run("accept", old, "--as", "tiny").code == 0 and Path("results/reference/tiny/ppl.csv").exists()

    def hang_up(text):
        raise typer.Abort

    monkeypatch.setattr("lengthbench.cli.accept.confirm", hang_up)
    assert run("accept", old, "--as", "other").code == 130 and not Path("results/reference/other").exists()


def edit(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: edit(f / "manifest.json", '"complete"', '"interrupted"'), "accept old: it is interrupted; go on with it"),
        (lambda f: edit(f / "ppl.csv", ",1.0,", ",nan,"), "unusable baseline old: oracle:constant:nats=1 "),
        (lambda f: edit(f / "ppl.csv", ",ok,,", ",oom,4 GiB,"), "64 has status oom: 4 GiB; measure it first"),
        (lambda f: [p.unlink() for p in f.glob("*.csv")], "accept old: it has no tables"),
        (lambda f: shutil.rmtree(f), "old is not a run folder"),
    ],
)  # fmt: skip
def test_what_no_reference_can_be(run, measured, damage, said):
    damage(measured(1, "old"))
    ran = run("accept", "old", "--as", "tiny", "--yes")
    assert ran.code == 2 and said in ran.err and not Path("results").exists()


def test_names(run, measured):
    old = measured(1, "old")
    assert accepting.name_of(old, None).startswith("oracle-constant-nats-1-")
    for name in ("../up", "", "a/b", "x.old"):
        ran = run("accept", old, "--as", name, "--yes")
        assert ran.code == 2 and f"--as '{name}': a name is letters" in ran.err
    manifest = json.loads((old / "manifest.json").read_text())
    manifest["models"] = [{"model": "reference:alibi"}, {"model": "reference:rope"}]
    (old / "manifest.json").write_text(json.dumps(manifest))
    assert accepting.name_of(old, None) == "family"
    accepting.accept(old, "family")
    ran = run("accept", "results/reference/family", "--as", "family", "--yes")
    assert ran.code == 2 and "that is the reference family itself" in ran.err
    assert Path("results/reference/family/ppl.csv").exists()


def test_a_full_disk_leaves_the_reference(measured, monkeypatch):
    old, new = measured(1, "old"), measured(2, "new")
    target = accepting.accept(old, "tiny")
    before = {p: p.read_bytes() for p in target.rglob("*.csv")}
    rename = Path.rename

    def full(self, to):
        if self.name == "tiny.part":
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(
        accepting.UserError, match=r"cannot write results/reference/tiny: No space left on device; the ref"
    ):
        accepting.accept(new, "tiny")
    assert {p: p.read_bytes() for p in target.rglob("*.csv")} == before and list(target.parent.iterdir()) == [target]


def test_listed_and_shown(run, measured):
    ran = run("list", "runs")
    assert (ran.code, ran.out) == (0, "") and "no runs in results/" in ran.err
    first, second = measured(1, "results/first"), measured(2, "results/second")
    edit(first / "manifest.json", '"start": "20', '"start": "19')
    accepting.accept(first, "tiny")
    Path("results/broken").mkdir()
    Path("results/broken/manifest.json").write_text("{")
    found = json.loads(run("list", "runs", "--json").out)
    assert list(found) == ["results/second", "results/first", "results/broken", "results/reference/tiny"]
    assert found["results/second"].startswith("ppl, complete, 20")
    assert found["results/second"].endswith("; oracle:constant:nats=2 at 64..128 of novels; 2 ok")
    assert found["results/broken"].startswith("damaged: results/broken/manifest.json is damaged")
    lines = run("list", "runs").out.splitlines()
    assert len(lines) == 4 and lines[0].startswith("results/second          ppl, complete")
    ran = run("show", second)
    shown = dict(line.split(maxsplit=1) for line in ran.out.splitlines() if line[0] != " ")
    assert ran.code == 0 and shown["status"] == "complete" and shown["lengths"] == "64, 128" and shown["rows"] == "2 ok"
    assert shown["model"].startswith(
        "oracle:constant:nats=2: oracle, trained at 256 (trained), float32 on cpu, weights "
    )
    assert shown["tables"] == "blocks.csv, positions.csv, ppl.csv" and shown["plots"] == "perplexity.png, positions.png"
    assert "accepted" not in shown and "accepted" in run("show", "results/reference/tiny").out
    assert json.loads(run("show", second, "--json").out) == json.loads((second / "manifest.json").read_text())
    ran = run("show", "results")
    assert ran.code == 2 and "results is not a run folder" in ran.err


def test_tasks_are_listed(run):
    found = json.loads(run("list", "tasks", "--json").out)
    assert "recall" in found and all(found.values())


def test_a_manifest_of_another_kind_is_listed(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/manifest.json").write_text(json.dumps({"settings": {}, "status": "running", "environment": None}))
    assert [run.line for run in listing.runs(tmp_path)] == ["running"]
    assert listing.details(tmp_path / "r") == [
        ("run", str(tmp_path / "r")),
        ("command", "lengthbench"),
        ("status", "running"),
    ]
