"""`python -m lengthbench`."""

from lengthbench.cli.app import app

app()
