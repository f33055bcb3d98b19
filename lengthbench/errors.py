"""What can go wrong in a way a person can fix, and the exit codes a script can rely on."""

OK = 0
GATE_FAILED = 1
UNUSABLE = 2
INCOMPLETE = 3
INTERNAL = 4
INTERRUPTED = 130


class UserError(Exception):
    """One line for a person: the value, the limit, the way out. Ends the command with exit code 2."""


class OutOfMemory(Exception):
    """A batch does not fit. Raised by a model before (CPU, estimated) or while (GPU) it runs."""
