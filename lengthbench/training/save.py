"""What a training leaves behind: config.json, model.safetensors, training.json and a picture of the loss."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from lengthbench.errors import UserError
from lengthbench.models.decoder import Decoder
from lengthbench.models.reference import MODEL_TYPE
from lengthbench.run.folder import environment
from lengthbench.run.table import replace
from lengthbench.training import checkpoint
from lengthbench.training.loop import Progress
from lengthbench.training.recipe import Recipe

WEIGHTS, PICTURE = "model.safetensors", "loss.png"
BESIDE = ("config.json", "training.json", "tokenizer.json", PICTURE)


def save(
    folder: Path,
    model: Decoder,
    recipe: Recipe,
    progress: Progress,
    data: dict[str, Any],
    tokenizer: Path | None,
    dtype: str,
) -> None:
    """Write the folder that `--model` reads; the checkpoint goes, its work is done.

    `data`: name and hash of the text; `tokenizer`: its file, None for bytes; `dtype` of the stored weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _describe(folder, model, recipe, progress, data, tokenizer)
        kind = getattr(torch, dtype)
        tensors = {name: p.detach().to(kind).contiguous() for name, p in model.named_parameters()}
        # Last: where they are, the training is done.
        with checkpoint.whole(folder / WEIGHTS) as part:
            save_file(tensors, part, metadata={"format": "pt"})
    except UserError:
        for name in BESIDE:
            (folder / name).unlink(missing_ok=True)
        raise
    for name in (checkpoint.NAME, f"{checkpoint.NAME}.part"):  # the latter from a kill -9
        (folder / name).unlink(missing_ok=True)


def _describe(
    folder: Path, model: Decoder, recipe: Recipe, progress: Progress, data: dict[str, Any], tokenizer: Path | None
) -> None:
    """Everything but the weights."""
    name = "bytes"
    if tokenizer:
        name = "tokenizer.json"
        with checkpoint.whole(folder / name) as part:
            shutil.copyfile(tokenizer, part)
    _write(folder / "config.json", {"model_type": MODEL_TYPE, "tokenizer": name, **asdict(model.config)})
    _write(
        folder / "training.json",
        {
            "train_updates": progress.update,
            "train_tokens": progress.update * recipe.batch * recipe.train_length,
            "train_seconds": round(progress.seconds, 3),
            "train_peak_memory_bytes": progress.peak_memory_bytes,
            "parameters": sum(p.numel() for p in model.parameters()),
            "recipe": recipe.as_dict(),
            "data": data,
            "environment": {k: v for k, v in environment().items() if k != "git_commit"},
            "curve": progress.curve,
        },
    )
    draw(folder, progress)


def draw(folder: Path, progress: Progress) -> None:
    """The loss curve, as loss.png in the folder."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.add_subplot()
    for key, label, line in (("loss", "running text", "-"), ("recall_loss", "recall answers", "--")):
        points = [(p["update"], p[key]) for p in progress.curve if p[key] is not None]
        if points:
            updates, losses = zip(*points, strict=True)
            axes.plot(updates, losses, line, color="black" if line == "-" else "tab:orange", label=label)
    axes.set(xlabel="update", ylabel="loss, nats per token", title=f"Training of {folder.name}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    with checkpoint.whole(folder / PICTURE) as part:
        figure.savefig(part, format="png", dpi=120, metadata={"Software": None})


def _write(path: Path, content: dict[str, Any]) -> None:
    replace(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
