"""Every way out of a command is an exit code, and one line on stderr if something went wrong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lengthbench.cli import caches

BOOK = "Night was dark and stormy. " * 30
PPL = ["ppl", "--model", "oracle:uniform", "--data", "book.txt", "--lengths", "64", "-q", "--out", "r"]
COMMANDS = [PPL, [*PPL, "--json"], ["list", "schemes"], ["list", "schemes", "--json"], ["--help"], ["ppl", "--help"],
            ["--version"]]  # fmt: skip
FULL = "lengthbench: cannot write the output: No space left on device; make room or send it elsewhere\n"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")


def shell(folder, args, **how):
    """Another process: its standard streams are files."""
    (folder / "book.txt").write_text(BOOK)
    command = [sys.executable, "-m", "lengthbench", *args]
    return subprocess.run(command, cwd=folder, text=True, timeout=120, **{"stderr": subprocess.PIPE, **how})


@needs_full
@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_stdout_on_a_full_disk_is_one_line(tmp_path, args, unbuffered):
    with Path("/dev/full").open("w") as full:
        ran = shell(tmp_path, args, stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert (ran.returncode, ran.stderr) == (2, FULL)


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_failure(tmp_path, args):
    read, write = os.pipe()
    os.close(read)
    try:
        ran = shell(tmp_path, args, stdout=write)
    finally:
        os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_full
def test_messages_that_cannot_be_told_keep_their_exit_code(tmp_path):
    with Path("/dev/full").open("w") as full:
        assert shell(tmp_path, ["list", "nothing"], stdout=subprocess.DEVNULL, stderr=full).returncode == 2
        assert shell(tmp_path, ["list", "schemes"], stdout=full, stderr=full).returncode == 2


def test_a_full_disk_elsewhere_names_the_file(run, monkeypatch):
    def full():
        raise OSError(28, "No space left on device", "cache/file")

    monkeypatch.setattr("lengthbench.registry.names", full)
    ran = run("list", "schemes")
    assert ran.code == 2 and ran.err.startswith("lengthbench: cannot write cache/file: No space left on device; ")


def test_a_mistake_of_ours_is_told_with_its_traceback(run, monkeypatch):
    monkeypatch.setattr("lengthbench.registry.names", lambda: {}["a"])
    ran = run("list", "schemes")
    assert ran.code == 4 and "KeyError: 'a'" in ran.err
    assert ran.err.endswith("lengthbench: internal error, please report the lines above\n")


@pytest.mark.parametrize("name, said", [
    ("a\nb", r"--model a\nb: neither a folder that exists nor a hub id; write org/name or org/name@revision"),
    ("\x1b[2Ja b", r"--model \x1b[2Ja b: neither a folder that exists nor a hub id"),
    ("m" * 5000, f"--model {'m' * 59}…: cannot be read: File name too long"),
    ("reference:" + "m" * 5000, f"--model reference:{'m' * 49}…: cannot be read: File name too long"),
    ("m" * 5000 + ".gguf", f"--model {'m' * 59}…: cannot be read: File name too long"),
    ("~no_such_user/m", "--model ~no_such_user/m: that home folder is not known; write the whole path"),
    ("own.py", "--model own.py: name the function in it that returns the model: own.py:FUNCTION"),
    ("own.py:", "--model own.py:: name the function in it that returns the model: own.py:FUNCTION"),
    ("nowhere.py", "--model nowhere.py: name the function in it"),
    ("oracle:constant:foo=1", "oracle:constant:foo=1: no key 'foo'; oracle:constant takes nats; every kind takes train, limit, delay, gib"),
    ("oracle:uniform:nats=1", "no key 'nats'; oracle:uniform takes no key of its own; every kind takes train"),
    ("oracle:context:at=64,above=2", "below is missing; oracle:context takes at, below, above; every kind takes"),
    ("oracle:constant", "oracle:constant: nats is missing"),
    ("oracle:byte:foo=1", "no key 'foo'; oracle:byte takes one character for each byte that costs something"),
    ("oracle:byte:€=1", "no key '€'; oracle:byte takes"),
    ("oracle:constant:nats=x", "oracle:constant:nats=x: nats=x is not a number"),
    ("oracle:uniform:train=inf", "train=inf tokens; give a whole number, 1 or more"),
    ("oracle:uniform:limit=nan", "limit=nan tokens; give a whole number"),
    ("oracle:copy:distance=1e400,hit=1,miss=2", "distance=1e400 tokens; give a whole number"),
    ("oracle:uniform:delay=-1", "delay=-1; give 0 or more"),
])  # fmt: skip
def test_a_name_that_is_no_model_is_one_short_line(run, tmp_path, name, said):
    (tmp_path / "own.py").write_text("")
    ran = run("ppl", "--model", name, "-q")
    assert ran.code == 2 and ran.err.startswith("lengthbench: ") and said in ran.err
    assert ran.err.count("\n") == 1 and ran.err[:-1].isprintable() and len(ran.err) < 250


def test_a_folder_closed_to_this_user(run, monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", closed)
    ran = run("ppl", "--model", "locked/in", "-q")
    assert (ran.code, ran.err) == (2, "lengthbench: --model locked/in: cannot be read: Permission denied\n")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The home folder is tmp_path/home, and nothing else says where caches go."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "FONTCONFIG_FILE", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="other folders")
def test_figures_without_a_home_folder(elsewhere):
    """Without a cache at hand fontconfig and matplotlib make theirs, or complain."""
    fonts = shutil.which("fc-list") is not None
    (elsewhere / "fonts.conf").write_text(
        "<fontconfig><dir>/usr/share/fonts</dir><cachedir>~/.fontconfig</cachedir></fontconfig>"
    )
    environment = {**os.environ, "FONTCONFIG_PATH": str(elsewhere)}
    if fonts:  # the complaint is there to be made
        told = subprocess.run(["fc-list"], env=environment, capture_output=True, text=True, cwd=elsewhere)
        assert "No writable cache directories" in told.stderr or (elsewhere / "home").exists()
        shutil.rmtree(elsewhere / "home", ignore_errors=True)
    ran = shell(elsewhere, PPL, stdout=subprocess.DEVNULL, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (elsewhere / "r/plots/perplexity.png").exists()
    assert not (elsewhere / "home").exists() and not list((elsewhere / "tmp").iterdir())


@pytest.mark.parametrize("there", ["home/.cache", "home"])
def test_a_home_folder_that_takes_caches_is_left_to_matplotlib(elsewhere, there):
    (elsewhere / there).mkdir(parents=True)
    caches.settle()
    assert "MPLCONFIGDIR" not in os.environ and not list((elsewhere / "tmp").iterdir())


def test_what_the_environment_says_of_caches_holds(elsewhere, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", str(elsewhere / "mine"))
    caches.settle()
    assert os.environ["MPLCONFIGDIR"] == str(elsewhere / "mine") and "FONTCONFIG_FILE" not in os.environ
