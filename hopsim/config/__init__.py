"""The hardware configuration: numbers with unit and source, read as frozen groups of plain values.

Costs the import of pydantic: import it where a GPU is made, not at the top of what `import hopsim`
reaches.
"""

from hopsim.config.hardware import Fact, HardwareConfig
from hopsim.config.listing import dump, guesses, show
from hopsim.config.loading import Override, load, names

__all__ = ["Fact", "HardwareConfig", "Override", "dump", "guesses", "load", "names", "show"]
