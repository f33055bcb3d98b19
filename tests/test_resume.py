"""A killed run loses nothing that was finished, and goes on to the very files of an uninterrupted one."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import read_csv

from lengthbench.run.journal import Journal
from lengthbench.run.table import VOLATILE

BOOK = " ".join(f"Night {n} was dark and stormy." for n in range(800))


def command(out, *more, delay="0.03"):
    return [sys.executable, "-m", "lengthbench", "ppl", "--model", f"oracle:context:at=64,below=3,above=2,delay={delay}",
            "--model", "oracle:constant:nats=1", "--data", "book.txt", "--lengths", "64..1024", "--batch-tokens", "64",
            "--out", str(out), *more]  # fmt: skip


def started(folder, out):
    """A run that is under way: some batches are in its journal, not all."""
    process = subprocess.Popen(command(out), cwd=folder, stderr=subprocess.PIPE, text=True)
    journal = folder / out / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") > 12):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    return process


def stable(path: Path) -> list[list[str]]:
    """The table without its times."""
    rows = list(csv.reader(path.open(encoding="utf-8", newline="")))
    kept = [i for i, name in enumerate(rows[0]) if name not in VOLATILE]
    return [[row[i] for i in kept] for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "book.txt").write_text(BOOK)
    subprocess.run(command("r"), cwd=folder, check=True, capture_output=True)
    return folder / "r"


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_and_resumed(tmp_path, whole, blow):
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path, "r")
    process.send_signal(blow)
    began = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    if blow != signal.SIGKILL:
        assert process.returncode == 130 and "interrupted; what was finished is kept, go on with --resume" in err
        assert json.loads((tmp_path / "r/manifest.json").read_text())["status"] == "interrupted"
        assert {row["status"] for row in read_csv(tmp_path / "r/ppl.csv")} <= {"ok"}
    lines = (tmp_path / "r/journal.jsonl").read_text().count("\n")
    with (tmp_path / "r/journal.jsonl").open("a") as file:
        file.write('deadbeef {"model": 0, "batch": 999')  # a line cut short
    ran = subprocess.run(command("r", "--resume"), cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for name in ("ppl", "blocks", "positions"):
        assert stable(tmp_path / f"r/{name}.csv") == stable(whole / f"{name}.csv")
    assert lines > 12 and not (tmp_path / "r/journal.jsonl").exists()
    for picture in ("perplexity.png", "positions.svg"):
        assert (tmp_path / "r/plots" / picture).read_bytes() == (whole / "plots" / picture).read_bytes()


@pytest.mark.slow
def test_only_what_is_missing_is_computed(tmp_path, whole):
    """With a delay of 30 ms a window, repeating the finished part would show."""
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path, "r")
    process.kill()
    process.communicate()
    journal = Journal(tmp_path / "r")
    finished = {r["batch"] for r in journal.records if "batch" in r}
    started_again = subprocess.Popen(
        command("r", "--resume"), cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    seen = set()
    while started_again.poll() is None:
        try:
            seen |= {
                (r["model"], r["batch"])
                for r in Journal(tmp_path / "r").records[len(journal.records) :]
                if "batch" in r
            }
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    assert seen and not {(0, batch) for batch in finished} & seen


def test_changed_settings_never_reuse_rows(run, tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64, "--out", "r"]
    assert run(*args).code == 0
    ran = run(*args)
    assert ran.code == 2 and "already holds a run" in ran.err
    ran = run(*args, "--resume", "--seed", 1)
    assert ran.code == 2 and "seed changed (seed was 0, is 1); old rows are never reused" in ran.err
    before = stable(tmp_path / "r/ppl.csv")
    assert run(*args, "--resume").code == 0
    assert stable(tmp_path / "r/ppl.csv") == before


def test_a_changed_text_is_noticed(run, tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64, "--out", "r"]
    run(*args)
    from lengthbench.run.folder import RunFolder, read_manifest

    folder = RunFolder(tmp_path / "r", read_manifest(tmp_path / "r"))
    folder.update(status="running")
    Journal(tmp_path / "r").append({"model": 0, "fingerprint": {"data": "another"}})
    ran = run(*args, "--resume")
    assert ran.code == 2 and "data" in ran.err and "changed since" in ran.err


def test_resume_without_a_folder_finds_the_unfinished_run(run, tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64]
    ran = run(*args, "--resume")
    assert ran.code == 2 and "no unfinished run with these settings" in ran.err
    run(*args)
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.endswith("-ppl-oracle-uniform")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    (folder / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    assert run(*args, "--resume").code == 0 and len(list((tmp_path / "results").iterdir())) == 1


def test_a_torn_line_is_dropped_and_the_next_one_kept(tmp_path):
    journal = Journal(tmp_path)
    journal.append({"model": 0, "batch": 0, "results": []})
    with journal.path.open("a") as file:
        file.write('0000 {"model": 0, "ba')
    again = Journal(tmp_path)
    again.append({"model": 0, "batch": 1, "results": []})
    assert [r["batch"] for r in Journal(tmp_path).records] == [0, 1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(run, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot write there" in run("ppl", "--model", "oracle:uniform", "--out", "locked/r").err


def test_a_path_through_a_file_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    ran = run("ppl", "--model", "oracle:uniform", "--out", "file/r")
    assert ran.code == 2 and "cannot write there" in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line(tmp_path):
    from lengthbench.errors import UserError

    journal = Journal(tmp_path)
    journal.path = Path("/dev/full")
    with pytest.raises(UserError, match=r"No space left on device; make room and go on with --resume"):
        journal.append({"model": 0})
