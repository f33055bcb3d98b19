"""A training checkpoint: weights and optimizer state as safetensors, progress in its header, replaced at once."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lengthbench.errors import UserError
from lengthbench.models.decoder import Decoder
from lengthbench.training.recipe import Recipe

if TYPE_CHECKING:
    from lengthbench.training.loop import Progress

NAME = "checkpoint.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def save(folder: Path, recipe: Recipe, model: Decoder, optimizer: torch.optim.Optimizer, progress: "Progress"):
    tensors = {f"model.{name}": p.detach().contiguous() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        for moment in MOMENTS:
            tensors[f"{moment}.{name}"] = optimizer.state[p][moment]
    header = {"recipe": json.dumps(recipe.as_dict()), "progress": json.dumps(asdict(progress))}
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / NAME) as part:
        save_file(tensors, part, metadata=header)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` at the end; without room for it nothing of it stays."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            part.unlink()
        why = getattr(error, "strerror", None) or str(error).rpartition("I/O error: ")[2]
        raise UserError(f"cannot write {path}: {why}; make room and go on with --resume") from None


def load(folder: Path, recipe: Recipe, model: Decoder, optimizer: torch.optim.Optimizer) -> "Progress | None":
    """Put the checkpoint of the same recipe into model and optimizer; None where there is no checkpoint."""
    from lengthbench.training.loop import Progress

    path = folder / NAME
    if not path.is_file():
        return None
    with safe_open(path, "pt") as file:
        header = file.metadata()
        if json.loads(header["recipe"]) != recipe.as_dict():
            raise UserError(f"{path} belongs to another recipe; remove it or give another --out")
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(file.get_tensor(f"model.{name}"))
                optimizer.state[p] = {m: file.get_tensor(f"{m}.{name}") for m in MOMENTS}
    return Progress(**json.loads(header["progress"]))
