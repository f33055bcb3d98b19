"""Memory of this process: what a stretch of work took at its peak, and what is left to take."""

import resource
import sys
from pathlib import Path


def resident() -> int:
    """Bytes of this process in memory now, or its peak where the system tells no better."""
    try:
        return _status("VmRSS")
    except OSError:
        return _lifetime_peak()


def available() -> int | None:
    """Bytes that can still be taken: free memory, or less where a control group allows less. None: unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return free if limit == "max" else min(free, int(limit) - used)
    except OSError:
        return free


class PeakMemory:
    """Context manager; `bytes` is the peak resident size of the process inside it (GPU: peak allocated).

    Linux lets a process reset its own high-water mark; elsewhere the peak since the start is reported.
    """

    bytes: int = 0

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def __enter__(self) -> "PeakMemory":
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats()
        else:
            try:
                Path("/proc/self/clear_refs").write_text("5")
            except OSError:
                pass
        return self

    def __exit__(self, *_: object) -> None:
        if self.device.startswith("cuda"):
            import torch

            self.bytes = torch.cuda.max_memory_allocated()
        else:
            try:
                self.bytes = _status("VmHWM")
            except OSError:
                self.bytes = _lifetime_peak()


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _lifetime_peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
