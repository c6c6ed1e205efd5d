"""The program: where it is, and how it is asked."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from .errors import PerflabWarning, ProgramMissingError, UnexpectedError, make_program_error

#: Names another program than the one that came with this package.
VARIABLE = "PERFLAB_PROGRAM"


def find_program() -> Path:
    """The program: `$PERFLAB_PROGRAM`, else the one that was installed with this package, else the first in `PATH`.

    Raises ProgramMissingError where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return _check_program(Path(named), f"{VARIABLE} names it")
    installed = _find_installed_program()
    if installed is not None:
        return installed
    # A relative entry means whatever folder one happens to be in.
    folders = [folder for folder in os.get_exec_path() if os.path.isabs(folder)]
    found = shutil.which("perflab", path=os.pathsep.join(folders)) if folders else None
    if found is None:
        raise ProgramMissingError(
            "there is no program `perflab`: this package came without it, and none is in PATH",
            f"install perflab, or name the program with {VARIABLE}",
        )
    return Path(found)


def _find_installed_program() -> Optional[Path]:
    """The program that pip put beside this package, wherever it puts programs."""
    here = Path(__file__).resolve()
    for distribution in importlib.metadata.distributions(name="perflab"):
        files = {str(distribution.locate_file(file)) for file in distribution.files or ()}
        paths = [Path(file).resolve() for file in files]
        if here not in paths:
            continue
        for path in paths:
            if path.name == "perflab" and path.is_file() and os.access(path, os.X_OK):
                return path
    return None


def _check_program(path: Path, why: str) -> Path:
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise ProgramMissingError(f"{path} is no program that can be run ({why})", "name the file `perflab`")
    return path.absolute()


class Program:
    """perflab, asked for one thing at a time."""

    def __init__(self, path: Union[str, os.PathLike[str], None] = None) -> None:
        #: The file that is run.
        self.path = find_program() if path is None else _check_program(Path(path), "it was named")

    def __repr__(self) -> str:
        return f"Program({str(self.path)!r})"

    def run(self, words: Sequence[str], *, archive: Optional[Path] = None) -> bytes:
        """What the program prints for these words. Its warnings become PerflabWarning, its errors exceptions."""
        command = [str(self.path), *words]
        if archive is not None:
            # Before the verb, so that nothing behind it is mistaken for it.
            command[1:1] = [f"--archive={archive}"]
        environment = {**os.environ, "NO_COLOR": "1"}
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False
            )
        except OSError as error:
            raise ProgramMissingError(f"{self.path}: {error.strerror or error}", f"see {VARIABLE}") from error
        stderr = ended.stderr.decode(errors="replace")
        if ended.returncode != 0:
            raise make_program_error(ended.returncode, command, stderr)
        for line in stderr.splitlines():
            if line.startswith("warning: "):
                warnings.warn(line.removeprefix("warning: "), PerflabWarning, stacklevel=3)
        return ended.stdout

    def ask(self, words: Sequence[str], *, archive: Optional[Path] = None) -> Any:
        """The answer as JSON."""
        words = ["--format=json", "--quiet", *words]
        said = self.run(words, archive=archive)
        try:
            return json.loads(said)
        except ValueError as error:
            raise UnexpectedError(
                f"perflab's answer is no JSON: {error}", "is it another program?", command=words
            ) from error

    def version(self) -> str:
        """`0.1.0`"""
        return self.run(["--version"]).decode().strip().removeprefix("perflab ")

    def locate_archive(self) -> Path:
        """The archive that the program takes where none is named, as an absolute path."""
        # Without a verb, the program says where runs go, whether there are any or not.
        return Path(self.ask([])["archive"])
