"""Silence: no bars, log lines or warnings of transformers and the hub; the caller's own settings come back."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL


@contextmanager
def quiet() -> Iterator[None]:
    """What they warn of is checked by ourselves and raised, or belongs on the card."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with quiet_hub():
        logging.set_verbosity(CRITICAL)
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()  # the hub's too: those are put back last


@contextmanager
def quiet_hub() -> Iterator[None]:
    """The hub's share of it, which needs no transformers: it tells of each retry and of who is not logged in."""
    import huggingface_hub.utils as hub

    level, bars = hub.logging.get_verbosity(), not hub.are_progress_bars_disabled()
    hub.logging.set_verbosity(CRITICAL)
    hub.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hub.logging.set_verbosity(level)
        if bars:
            hub.enable_progress_bars()
        else:
            hub.disable_progress_bars()
