"""Kernels of libraries as their own host code launches them: the bits of silicon, what is found in them, and their cycles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import hopsim as hs
from hopsim.kernels.measured import captured
from hopsim.kernels.measured.captured import CYCLES, Captured
