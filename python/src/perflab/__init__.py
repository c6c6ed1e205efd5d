"""perflab's archive in Python: runs, their tables, and comparisons.

    import perflab

    archive = perflab.open()
    samples = archive.runs(label="before").samples().to_pandas()
    perflab.compare("before", "after")
"""

from __future__ import annotations

import os
from typing import Union

from .archive import Archive, compare
from .comparison import Comparison
from .comparison_document import ChangeInterval, Diagnostic, MetricChange, SideSummary, VerdictRow
from .errors import (
    ArchiveError,
    EnvironmentRefusedError,
    NothingJudgedError,
    PerflabError,
    PerflabWarning,
    ProgramMissingError,
    RegressionError,
    SettingsLeftError,
    UnexpectedError,
    UsageError,
    WorkloadFailedError,
)
from .picture import Picture
from .program import Program, find_program
from .run import Fact, Facts, Run, Runs
from .tables import Column, list_columns

__version__ = "0.1.0"

__all__ = [
    "Archive",
    "ArchiveError",
    "ChangeInterval",
    "Column",
    "Comparison",
    "Diagnostic",
    "EnvironmentRefusedError",
    "Fact",
    "Facts",
    "MetricChange",
    "NothingJudgedError",
    "PerflabError",
    "PerflabWarning",
    "Picture",
    "Program",
    "ProgramMissingError",
    "RegressionError",
    "Run",
    "Runs",
    "SettingsLeftError",
    "SideSummary",
    "UnexpectedError",
    "UsageError",
    "VerdictRow",
    "WorkloadFailedError",
    "compare",
    "find_program",
    "list_columns",
    "open",
]


def open(
    archive: Union[str, os.PathLike[str], None] = None,
    *,
    program: Union[Program, str, os.PathLike[str], None] = None,
) -> Archive:
    """The archive in this folder; without one, that which the program takes here, by its own rules."""
    return Archive(archive, program=program)
