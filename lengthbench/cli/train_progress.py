"""What a person sees while a model trains: loss, tokens/s and time left."""

import time

from lengthbench.cli.progress import EVERY, Screen, bar, duration
from lengthbench.training import loop
from lengthbench.training.recipe import Recipe


class Shown:
    """Context manager; a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

    def __init__(self, recipe: Recipe, quiet: bool) -> None:
        self.recipe = recipe
        self.console = Screen(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.bar = bar(self.console)
        self.task = self.bar.add_task(recipe.scheme, total=recipe.updates, state="")
        self.began = self.said = time.monotonic()
        self.n_fed = 0

    def __enter__(self) -> "Shown":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, progress: loop.Progress, n_tokens: int) -> None:
        self.n_fed += n_tokens
        now = time.monotonic()
        state = f"{self._loss(progress)}{self.n_fed / max(now - self.began, 1e-9):,.0f} tokens/s"
        self.bar.update(self.task, completed=progress.update, state=state)
        if self.bar.disable and now - self.said > EVERY:
            self.said = now
            left = (self.recipe.updates - progress.update) * self.recipe.batch * self.recipe.train_length
            self.console.print(
                f"{self.recipe.scheme}: {100 * progress.update // self.recipe.updates} %, {state}, "
                f"{duration(left / self.n_fed * (now - self.began))} left",
                markup=False,
            )

    def done(self, folder, progress: loop.Progress) -> None:
        self.console.print(
            f"{self.recipe.scheme}: {self._loss(progress)}{progress.update:,} updates, {duration(progress.seconds)}; "
            f"use it with --model {folder}",
            markup=False,
        )

    @staticmethod
    def _loss(progress: loop.Progress) -> str:
        if not progress.curve:
            return ""
        last = progress.curve[-1]
        said = {"loss": last["loss"], "recall": last["recall_loss"]}
        return "".join(f"{name} {value:.3f}, " for name, value in said.items() if value is not None)
