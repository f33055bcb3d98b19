"""The journal: a line a finished batch, written as it finishes, so that a killed run loses nothing finished.

Each line carries the checksum of its own record. A line that was cut short (kill -9, full disk) is dropped on
reading and its batch is run again.
"""

import json
import zlib
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.run.folder import JOURNAL


class Journal:
    """Append-only records of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self.records = list(_read(self.path)) if self.path.exists() else []

    def append(self, record: dict[str, Any]) -> None:
        body = json.dumps(record, separators=(",", ":"))
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                if file.tell() and not _ends_line(self.path):
                    file.write("\n")
                file.write(f"{zlib.crc32(body.encode()):08x} {body}\n")
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}; make room and go on with --resume") from None
        self.records.append(record)

    def finished(self, model: int, fingerprint: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
        """Results of the finished batches of this model, by batch; the first call for it notes `fingerprint`.

        Raises UserError if the model, its text or its plan are not what they were.
        """
        own = [record for record in self.records if record["model"] == model]
        before = next((record["fingerprint"] for record in own if "fingerprint" in record), None)
        if before is None:
            self.append({"model": model, "fingerprint": fingerprint})
        elif before != fingerprint:
            changed = ", ".join(k for k in fingerprint if fingerprint[k] != before.get(k))
            raise UserError(
                f"--resume: {changed} of {fingerprint['model']} changed since; old rows are never reused, "
                "give another --out"
            )
        return {record["batch"]: record["results"] for record in own if "batch" in record}

    def remove(self) -> None:
        """Once the tables stand, they carry all sums."""
        self.path.unlink(missing_ok=True)


def _read(path: Path):
    for line in path.read_bytes().split(b"\n"):
        checksum, _, body = line.partition(b" ")
        if body and checksum == b"%08x" % zlib.crc32(body):
            yield json.loads(body)


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
