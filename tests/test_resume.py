"""A killed run loses nothing that was finished, and goes on to the very files of an uninterrupted one."""

import csv
import errno
import gc
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import read_csv

from lengthbench.errors import UserError
from lengthbench.run import folder as folders
from lengthbench.run.journal import Journal
from lengthbench.run.lock import Lock
from lengthbench.run.table import VOLATILE

BOOK = " ".join(f"Night {n} was dark and stormy." for n in range(260))
"""Seven blocks of 1024 bytes: some two hundred passes of 20 ms."""


ARGS = ["ppl", "--model", "oracle:context:at=64,below=3,above=2,delay=0.02", "--model", "oracle:constant:nats=1",
        "--data", "book.txt", "--lengths", "64..1024", "--batch-tokens", "64", "--out", "r"]  # fmt: skip
COMMAND = [sys.executable, "-m", "lengthbench", *ARGS]


def started(folder):
    """A run that is under way: some batches are in its journal, not all."""
    process = subprocess.Popen(COMMAND, cwd=folder, stderr=subprocess.PIPE, text=True)
    journal = folder / "r/journal.jsonl"
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
    subprocess.run(COMMAND, cwd=folder, check=True, capture_output=True)
    return folder / "r"


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_and_resumed(run, tmp_path, whole, blow):
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path)
    process.send_signal(blow)
    before = (tmp_path / "r/journal.jsonl").read_text().count("\n")
    _, err = process.communicate(timeout=60)
    if blow != signal.SIGKILL:
        assert process.returncode == 130 and "interrupted; what was finished is kept, go on with --resume" in err
        assert json.loads((tmp_path / "r/manifest.json").read_text())["status"] == "interrupted"
        assert {row["status"] for row in read_csv(tmp_path / "r/ppl.csv")} <= {"ok"}
    lines = (tmp_path / "r/journal.jsonl").read_text().count("\n")
    assert 12 < lines < before + 50  # it stopped there and then, in batches: seconds depend on who else computes
    with (tmp_path / "r/journal.jsonl").open("a") as file:
        file.write('deadbeef {"model": 0, "batch": 999')  # a line cut short
    ran = run(*ARGS, "--resume")
    assert ran.code == 0, ran.err
    for name in ("ppl", "blocks", "positions"):
        assert stable(tmp_path / f"r/{name}.csv") == stable(whole / f"{name}.csv")
    assert not (tmp_path / "r/journal.jsonl").exists()
    for picture in ("perplexity.png", "positions.svg"):
        assert (tmp_path / "r/plots" / picture).read_bytes() == (whole / "plots" / picture).read_bytes()


@pytest.mark.slow
def test_only_what_is_missing_is_computed(run, tmp_path, monkeypatch):
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path)
    process.kill()
    process.communicate()
    finished = batches(Journal(tmp_path / "r").records)
    computed = []
    append = Journal.append

    def note(journal, record):
        computed.append(record)
        append(journal, record)

    monkeypatch.setattr(Journal, "append", note)
    assert run(*ARGS, "--resume").code == 0
    again = batches(computed)
    assert len(finished) > 10 and again and not set(finished) & set(again)
    first = sorted(batch for model, batch in finished + again if model == 0)
    assert first == list(range(len(first))) and len(first) > 100  # none is missing, none twice


def batches(records) -> list[tuple[int, int]]:
    return [(record["model"], record["batch"]) for record in records if "batch" in record]


@pytest.mark.slow
def test_a_folder_that_another_process_works_on_is_refused(run, tmp_path, whole):
    """By the process that has it; kill -9 leaves it free."""
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path)
    said = f"lengthbench: r is in use by process {process.pid} on {platform.node()}; end that, or give another --out\n"
    for more in (["--resume"], []):
        ran = run(*ARGS, *more, "-q")
        assert (ran.code, ran.err) == (2, said)
    process.kill()
    process.communicate()
    assert (tmp_path / "r/.lock").exists()
    assert run(*ARGS, "--resume").code == 0
    names = [{str(p.relative_to(folder)) for p in folder.rglob("*")} for folder in (tmp_path / "r", whole)]
    assert names[0] == names[1] and ".lock" not in names[0]


@pytest.mark.slow
def test_an_interrupted_run_leaves_no_lock(tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    process = started(tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert json.loads((tmp_path / "r/manifest.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "r/.lock").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_a_lock_is_held_by_one_and_ends_with_its_holder(tmp_path):
    first = Lock(tmp_path)
    with pytest.raises(UserError, match=f"in use by process {os.getpid()} on "):
        Lock(tmp_path)
    first.open()
    assert not (tmp_path / ".lock").exists()
    second = Lock(tmp_path)
    first.open()  # again, which takes nothing from the next one
    with pytest.raises(UserError, match="in use by process"):
        Lock(tmp_path)
    del second  # as if what held it had failed
    gc.collect()
    assert not (tmp_path / ".lock").exists()
    (tmp_path / ".lock").write_text("1 on elsewhere\n")  # left by a kill -9
    third = Lock(tmp_path)
    assert (tmp_path / ".lock").read_text() == f"{os.getpid()} on {platform.node()}\n"
    third.open()


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_a_lock_that_was_taken_away_between_open_and_flock_is_no_lock(tmp_path, monkeypatch):
    import fcntl

    held = fcntl.flock
    seen = []

    def slow(file, how):
        held(file, how)
        if not seen:
            (tmp_path / ".lock").unlink()
        seen.append(file)

    monkeypatch.setattr(fcntl, "flock", slow)
    lock = Lock(tmp_path)
    assert len(seen) == 2 and (tmp_path / ".lock").exists()
    with pytest.raises(UserError, match="in use by process"):
        Lock(tmp_path)
    lock.open()


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_a_disk_without_locks_keeps_nobody_out(tmp_path, monkeypatch):
    import fcntl

    def without(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    locks = [Lock(tmp_path), Lock(tmp_path)]
    for lock in locks:
        lock.open()
    assert not list(tmp_path.iterdir())


def test_a_finished_run_stays_one_when_its_resume_is_refused(run, tmp_path):
    (tmp_path / "book.txt").write_text(BOOK)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64, "--out", "r"]
    assert run(*args).code == 0
    before = {p.name for p in (tmp_path / "r").iterdir()}
    (tmp_path / "book.txt").unlink()
    assert "no such file" in run(*args, "--resume").err
    assert {p.name for p in (tmp_path / "r").iterdir()} == before and "manifest.json" in before


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


@pytest.mark.parametrize("out, message", [
    ("file/r", "cannot write there: Not a directory"),
    ("file", "give a folder"),
    ("", "--out '': empty; give a folder, or leave --out away"),
    (" ", "--out ' ': empty"),
    ("x" * 300, "cannot write there: File name too long"),
    ("~no_such_user/r", "cannot write there: "),
    (os.fsdecode(b"caf\xe9"), r"--out 'caf\udce9': no UTF-8, so no table can name it"),
])  # fmt: skip
def test_what_can_be_no_run_folder(run, tmp_path, out, message):
    (tmp_path / "file").write_text("")
    for command in (["ppl", "--model", "oracle:uniform"], ["train", "--scheme", "none", "--tokens", "1k"]):
        ran = run(*command, "--out", out)
        lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
        assert ran.code == 2 and message in ran.err and len(lines) == 1, ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_below_the_home_folder(run, tmp_path, monkeypatch):
    """`--out=~/r`: no shell expands that."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "book.txt").write_text(BOOK)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64, "--out=~/r"]
    assert run(*args).code == 0 and (tmp_path / "home/r/plots/perplexity.png").exists()
    assert "already holds a run" in run(*args).err and not (tmp_path / "~").exists()


@pytest.mark.parametrize("content, message", [
    (b"{", "is damaged: "),
    (b"\xff", "is damaged: "),
    (b"[]", "is not that of a run: it has no settings and status"),
    (b'{"status": "running"}', "is not that of a run"),
])  # fmt: skip
def test_a_manifest_that_is_none(run, tmp_path, content, message):
    (tmp_path / "book.txt").write_text(BOOK)
    (tmp_path / "results/other").mkdir(parents=True)
    (tmp_path / "results/other/manifest.json").write_bytes(content)
    args = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", 64, "--resume"]
    ran = run(*args, "--out", "results/other")
    assert ran.code == 2 and message in ran.err and len(ran.err.splitlines()) == 2
    assert "no unfinished run with these settings" in run(*args).err


def test_a_disk_without_room_for_a_run_leaves_no_folder(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match="cannot write there: No space left on device"):
        folders.claim(tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line(tmp_path):
    journal = Journal(tmp_path)
    journal.path = Path("/dev/full")
    with pytest.raises(UserError, match=r"No space left on device; make room and go on with --resume"):
        journal.append({"model": 0})
