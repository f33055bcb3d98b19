"""Where the font caches go if the home folder cannot take them: into a folder of this process, gone at its end.

Otherwise matplotlib warns of such a home on stderr, or makes it, and its helper fc-list complains as well. Caches of
models and data sets stay where they are: they are worth keeping.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

FONTS = """<?xml version="1.0"?>
<fontconfig><cachedir>{}</cachedir><include ignore_missing="yes">fonts.conf</include></fontconfig>
"""
_folders: "list[TemporaryDirectory[str]]" = []


def settle() -> None:
    """Before matplotlib is imported. What the user's environment says of it holds."""
    if "MPLCONFIGDIR" in os.environ or (_takes("XDG_CONFIG_HOME", ".config") and _takes("XDG_CACHE_HOME", ".cache")):
        return
    import atexit
    from tempfile import TemporaryDirectory

    try:
        folder = TemporaryDirectory(prefix="lengthbench-", ignore_cleanup_errors=True)
        Path(folder.name, "fonts.conf").write_text(FONTS.format(folder.name), "utf-8")
    except OSError:
        return  # no room for temporary files either: whoever needs one will say so
    _folders.append(folder)
    atexit.register(clear)
    os.environ["MPLCONFIGDIR"] = folder.name
    os.environ.setdefault("FONTCONFIG_FILE", str(Path(folder.name, "fonts.conf")))


def clear() -> None:
    while _folders:
        _folders.pop().cleanup()


def _takes(variable: str, name: str) -> bool:
    """Whether the user's folder of this kind is there, or can be made in a home that is there."""
    if os.environ.get(variable):
        place = Path(os.environ[variable])
    else:
        try:
            home = Path.home()
        except RuntimeError:
            return False
        if not os.access(home, os.F_OK):
            return False
        place = home / name
    while not os.access(place, os.F_OK) and place != place.parent:
        place = place.parent
    return os.access(place, os.W_OK)
