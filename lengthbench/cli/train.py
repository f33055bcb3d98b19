"""`lengthbench train`: reference models from scratch, the same but for their position scheme."""

import math
import re
from pathlib import Path
from typing import Annotated

from typer import Option

from lengthbench import registry
from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded
from lengthbench.errors import UserError

FAMILY = "none,learned,sinusoidal,rope,t5,alibi"


@guarded
def train(
    scheme: Annotated[list[str], Option("--scheme", help="NAME[:key=value,...], several by commas.")] = [FAMILY],  # noqa: B006 (typer reads the default, nobody changes it)
    train_length: Annotated[int, Option("--train-length", help="Tokens fed in each training window.")] = 256,
    tokens: Annotated[str, Option(help="Budget in tokens for each scheme: 500k, 8M.")] = "8M",
    layers: Annotated[int, Option(help="Layers of the decoder.")] = 4,
    width: Annotated[int, Option(help="Channels of the residual stream.")] = 128,
    heads: Annotated[int, Option(help="Attention heads.")] = 8,
    batch: Annotated[int, Option(help="Windows an update.")] = 16,
    learning_rate: Annotated[float, Option(help="Peak of the schedule.")] = 3e-3,
    recall: Annotated[float, Option(help="Share of the windows that are recall exercises.")] = 0.5,
    data: o.Data = "novels-train",
    column: o.Column = None,
    split: o.Split = None,
    tokenizer: Annotated[str, Option(help="bytes, or a tokenizer.json of the tokenizers library.")] = "bytes",
    save_dtype: Annotated[str, Option(help="float32 | float16 | bfloat16, of the stored weights.")] = "float32",
    seed: o.Seed = 0,
    out: Annotated[str, Option(help="Folder for the models, one folder a scheme in it.")] = "results/trained",
    resume: o.Resume = False,
    quiet: o.Quiet = False,
) -> None:
    """Train reference models from scratch: same data, same seed, same shape, another position scheme.

    Each becomes a folder that --model takes. A killed training goes on with --resume, to the same result.
    """
    if save_dtype not in ("float32", "float16", "bfloat16"):
        raise UserError(f"--save-dtype {save_dtype}: it is one of float32, float16, bfloat16")
    if not 0 < learning_rate < math.inf:
        raise UserError(f"--learning-rate {learning_rate}: must be above 0, for example 3e-3")
    if seed < 0:
        raise UserError(f"--seed {seed}: must be 0 or more")
    from lengthbench.training.recipe import Recipe

    schemes = [name for text in scheme for name in _split(text)]
    recipes = [
        Recipe(
            name,
            train_length,
            count(tokens),
            layers,
            width,
            heads,
            batch,
            learning_rate,
            recall=recall,
            seed=seed,
        )
        for name in schemes
    ]
    for recipe in recipes:
        registry.load(recipe.scheme, recipe.decoder(256).shape)
    from lengthbench.run.folder import named, release, slug

    folders = [named(out) / slug(name) for name in schemes]
    try:
        for folder in folders:
            _check(folder, resume)
        _train(recipes, folders, data, column, split, tokenizer, save_dtype, quiet)
    except UserError:
        for folder in folders:
            release(folder)
        raise


def count(text: str) -> int:
    """`500k` -> 500000, `8M` -> 8000000."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", text.strip())
    if not match or float(match[1]) <= 0:
        raise UserError(f"--tokens '{text}': not a number of tokens, for example 500k or 8M")
    return round(float(match[1]) * {"": 1, "k": 1000, "m": 1_000_000}[match[2].lower()])


def _split(text: str) -> list[str]:
    """Commas separate schemes, but also the parameters of one: `alibi,rope:theta=5e5,partial=0.5` is two."""
    names: list[str] = []
    for part in text.split(","):
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part.strip())
    return names


def _check(folder: Path, resume: bool) -> None:
    from lengthbench.run.folder import claim
    from lengthbench.training.checkpoint import NAME

    claim(folder)
    if (folder / "model.safetensors").exists():
        if not resume:
            raise UserError(f"{folder} holds a trained model already; give another --out")
    elif (folder / NAME).exists() and not resume:
        raise UserError(f"{folder} holds an unfinished training; go on with --resume, or give another --out")


def _train(recipes, folders, data, column, split, tokenizer, save_dtype, quiet) -> None:
    from lengthbench.cli.train_progress import Shown
    from lengthbench.corpora import source
    from lengthbench.corpora.text import tokenize
    from lengthbench.models.reference import tokenizer as tokenizer_of
    from lengthbench.training.batches import Batches
    from lengthbench.training.loop import train
    from lengthbench.training.save import save

    path = None if tokenizer == "bytes" else Path(tokenizer)
    if path and not path.is_file():
        raise UserError(f"--tokenizer {path}: no such file; give bytes or a tokenizer.json")
    words = tokenizer_of(path.name if path else "bytes", path.parent if path else Path())
    texts = source.read(data, column=column, split=split)
    documents = [d.tokens for d in tokenize(texts, words)]
    record = {"name": texts.name, **texts.facts}
    for recipe, folder in zip(recipes, folders, strict=True):
        if (folder / "model.safetensors").exists():
            continue
        with Shown(recipe, quiet) as shown:
            model, progress = train(recipe, Batches(documents, words, recipe), words.vocabulary, folder, shown.update)
        save(folder, model, recipe, progress, record, path, save_dtype)
        shown.done(folder, progress)
