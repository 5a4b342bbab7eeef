"""`python -m hopsim` is the `hopsim` command."""

from __future__ import annotations

from hopsim.cli.app import main

main()
