"""Silence: no bars, log lines or warnings of transformers and the hub; the caller's own settings come back."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL


@contextmanager
def quiet() -> Iterator[None]:
    """What they warn of is checked by ourselves and raised, or belongs on the card."""
    import huggingface_hub.utils as hub
    from transformers.utils import logging

    level = logging.get_verbosity()
    bars, hub_bars = logging.is_progress_bar_enabled(), not hub.are_progress_bars_disabled()
    logging.set_verbosity(CRITICAL)
    logging.disable_progress_bar()  # the hub's too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        if hub_bars:
            hub.enable_progress_bars()
        else:
            hub.disable_progress_bars()
