"""Who may import whom, and what must never be imported early."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1] / "lengthbench"
LAYERS = [
    {"errors", "lengths", "trials", "memory", "files", "background"},
    {"windows", "stats", "scheme", "registry", "rotary", "model", "tasks", "positions"},
    {"plan", "schemes", "corpora", "probes", "retrieval", "request", "suite"},
    {"models", "run"},
    {"engine", "cost", "training", "plots", "report", "check"},
    {"measure", "tabled", "api", "timing", "speed"},
    {"cli", "__main__", "__init__"},
]
"""Lower layers first; a module imports from its own layer or a lower one."""
ALLOWED = {("probes", "run"), ("measure", "plots")}
"""`probes` name their CSV schema."""
HEAVY = {"torch", "transformers", "datasets", "matplotlib", "pandas", "scipy"}


def imports(path: Path) -> set[str]:
    """First part below `lengthbench` of everything the file imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lengthbench":
            below = (node.module or "").split(".")[1:]
            found |= {below[0]} if below else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lengthbench.")}
    return found


def outside(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[0] for a in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def files():
    for path in sorted(ROOT.rglob("*.py")):
        yield path, path.relative_to(ROOT).with_suffix("").parts[0]


def test_nothing_imports_upwards():
    for path, own in files():
        for other in imports(path) - {own}:
            assert layer(other) <= layer(own) or (own, other) in ALLOWED, f"{path} imports {other}"


def test_schemes_do_not_know_each_other():
    for path in (ROOT / "schemes").glob("*.py"):
        assert "schemes" not in imports(path), path


def test_tables_and_figures_never_need_torch():
    for folder in ("run", "plots", "probes", "corpora", "retrieval", "check", "report"):
        for path in (ROOT / folder).glob("*.py"):
            assert not outside(path) & {"torch", "transformers"}, path


def test_only_the_command_line_prints():
    for path, own in files():
        if own in ("cli", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id in ("print", "exit")), f"{path} prints or exits"


def test_help_and_usage_errors_load_nothing_heavy():
    code = (
        "import sys\nfrom lengthbench.cli.app import app\n"
        "sys.argv = ['lengthbench', {args}]\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(sorted(set(sys.modules) & {heavy}))"
    )
    for args in ("'--help'", "'ppl', '--help'", "'ppl', '--lengths', 'abc'", "'list', 'schemes'"):
        out = subprocess.run(
            [sys.executable, "-c", code.replace("{args}", args).replace("{heavy}", repr(HEAVY))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert out.stdout.splitlines()[-1] == "[]", f"{args} imports {out.stdout.splitlines()[-1]}"


def test_every_package_marker_is_empty():
    for path in ROOT.rglob("__init__.py"):
        assert path.parent == ROOT or path.read_text() == "", path
