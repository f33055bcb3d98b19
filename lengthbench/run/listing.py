"""The runs in a folder, and one of them in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.run.folder import MANIFEST, read_manifest

RESULTS = Path("results")
"""Where runs are made by default; accepted ones stand in its `reference/`."""


@dataclass(frozen=True)
class Listed:
    path: Path
    line: str
    """What it is, in a line; of a damaged one, why it cannot be read."""
    manifest: dict[str, Any]
    """Empty where it cannot be read."""


def runs(root: Path = RESULTS) -> Iterator[Listed]:
    """Runs below `root` and its reference/, the latest first; references last."""
    found = [_listed(file.parent) for file in root.glob(f"*/{MANIFEST}")]
    yield from sorted(found, key=lambda run: (str(run.manifest.get("start", "")), str(run.path)), reverse=True)
    yield from (_listed(file.parent) for file in sorted((root / "reference").glob(f"*/{MANIFEST}")))


def _listed(path: Path) -> Listed:
    try:
        manifest = read_manifest(path)
    except UserError as error:
        return Listed(path, f"damaged: {error}", {})
    return Listed(path, summary(manifest), manifest)


def summary(manifest: dict[str, Any]) -> str:
    """`ppl, complete, 2026-11-30 07:21; 12 models at 256..8192 of novels; 70 ok, 2 unsupported`."""
    when = str(manifest.get("start", ""))[:16].replace("T", " ")
    head = ", ".join(filter(None, (str(manifest.get("command", "")), str(manifest["status"]), when)))
    parts = [head, " ".join(filter(None, (_models(manifest), _lengths(manifest), _data(manifest)))), counts(manifest)]
    return "; ".join(filter(None, parts))


def counts(manifest: dict[str, Any]) -> str:
    """How many rows of the summary have which status."""
    return ", ".join(f"{n} {status}" for status, n in _dict(manifest, "rows_per_status").items())


def details(path: Path) -> list[tuple[str, str]]:
    """Name and text of everything a person asks of a run first. Raises UserError if it is none."""
    manifest = read_manifest(path)
    environment, data = _dict(manifest, "environment"), _dict(manifest, "data")
    versions, machine = _dict(environment, "versions"), _dict(environment, "machine")
    found = [
        ("run", str(path)),
        ("command", " ".join(["lengthbench", *map(str, manifest.get("argv", []))])),
        ("status", str(manifest["status"])),
        ("time", " to ".join(str(manifest[k]) for k in ("start", "end") if manifest.get(k))),
        ("accepted", str(manifest.get("accepted", ""))),
        ("text", ", ".join(filter(None, (str(data.get("name", "")), str(data.get("sha256", ""))[:12])))),
        ("lengths", ", ".join(map(str, manifest.get("lengths", [])))),
        ("rows", counts(manifest)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("commit", str(environment.get("git_commit") or "")),
        ("machine", ", ".join(str(value) for value in machine.values() if value)),
    ]
    found += [("model", _model(model)) for model in manifest.get("models", [])]
    files = sorted(p.name for p in path.iterdir() if p.is_file() and p.name != MANIFEST)
    plots = sorted(p.name for p in (path / "plots").glob("*.png"))
    found += [("tables", ", ".join(files)), ("plots", ", ".join(plots)), ("finding", str(manifest.get("sentence", "")))]
    return [(name, text) for name, text in found if text]


def _model(model: dict[str, Any]) -> str:
    """`reference:alibi: alibi, trained at 256 (trained), float32 on cpu, weights 0f3b...`."""
    scheme = " ".join(filter(None, (str(model.get("scheme", "")), str(model.get("scheme_params", "")))))
    trained = model.get("train_length")
    parts = [
        scheme,
        f"trained at {trained} ({model.get('train_length_source', '')})" if trained else "training length unknown",
        f"{model.get('dtype', '')} on {model.get('device', '')}",
        f"weights {str(model.get('weights_sha256', ''))[:12]}",
    ]
    return f"{model.get('model', '')}: {', '.join(parts)}"


def _models(manifest: dict[str, Any]) -> str:
    names = [str(model.get("model", "")) for model in manifest.get("models", [])]
    return names[0] if len(names) == 1 else f"{len(names)} models" if names else ""


def _lengths(manifest: dict[str, Any]) -> str:
    lengths = manifest.get("lengths", [])
    return f"at {lengths[0]}..{lengths[-1]}" if len(lengths) > 1 else f"at {lengths[0]}" if lengths else ""


def _data(manifest: dict[str, Any]) -> str:
    name = _dict(manifest, "data").get("name")
    return f"of {name}" if name else ""


def _dict(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}
