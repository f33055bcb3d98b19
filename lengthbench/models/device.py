"""Where to compute: `auto` is the GPU if torch sees one."""

from lengthbench.errors import UserError


def device(wanted: str) -> str:
    """--device -> a torch device that is there."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted != "cpu" and not wanted.startswith("cuda"):
        raise UserError(f"--device {wanted}: it is auto, cpu or cuda[:N]")
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {wanted}: torch sees no GPU here; use --device cpu")
    return wanted
