"""What can go wrong, by the exit codes of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional


class PerflabError(Exception):
    """What the program could not do, or what cannot be read."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        exit_code: Optional[int] = None,
        command: Sequence[str] = (),
        stderr: str = "",
        said: str = "",
    ) -> None:
        super().__init__(said or (f"{message}; {hint}" if hint else message))
        #: What happened.
        self.message = message
        #: What to do about it; empty where the program does not say.
        self.hint = hint
        #: The program's exit code; none where it was not the program.
        self.exit_code = exit_code
        #: What was run.
        self.command = tuple(command)
        #: All that the program printed beside its answer.
        self.stderr = stderr


class UnexpectedError(PerflabError):
    """Exit code 1: it should not happen."""


class UsageError(PerflabError):
    """Exit code 2: what was asked for makes no sense, or is not there."""


class EnvironmentRefusedError(PerflabError):
    """Exit code 3: the machine does not allow it, or lacks something."""


class WorkloadFailedError(PerflabError):
    """Exit code 4: a workload failed, or the run was stopped."""


class RegressionError(PerflabError):
    """Exit code 5: something is worse."""


class SettingsLeftError(PerflabError):
    """Exit code 6: settings are not what they were."""


class NothingJudgedError(PerflabError):
    """Exit code 7: nothing could be judged."""


class ArchiveError(PerflabError):
    """A file of the archive that is missing, damaged or too new for this package."""


class ProgramMissingError(EnvironmentRefusedError):
    """The program is not there."""


class PerflabWarning(UserWarning):
    """What the program warns about, and runs that a table leaves out."""


_BY_EXIT_CODE: dict[int, type[PerflabError]] = {
    1: UnexpectedError,
    2: UsageError,
    3: EnvironmentRefusedError,
    4: WorkloadFailedError,
    5: RegressionError,
    6: SettingsLeftError,
    7: NothingJudgedError,
}


def make_program_error(exit_code: int, command: Sequence[str], stderr: str) -> PerflabError:
    """The exception for what a program said that ended with this code."""
    said = _find_error_text(stderr)
    if not said and exit_code < 0:
        said = f"perflab was killed by signal {-exit_code}"
    said = said or f"perflab ended with {exit_code} and said nothing"
    message, hint = _split_hint(said)
    kind = _BY_EXIT_CODE.get(exit_code, UnexpectedError)
    return kind(message, hint, exit_code=exit_code, command=command, stderr=stderr, said=said)


def _find_error_text(stderr: str) -> str:
    """What the program says went wrong, without its warnings and the usage of its command line."""
    lines = [line for line in stderr.splitlines() if not line.startswith("warning: ")]
    begin = next((place for place, line in enumerate(lines) if line.startswith("error: ")), 0)
    text = "\n".join(line[len("error: ") :] if line.startswith("error: ") else line for line in lines[begin:])
    # What the parser of the command line says has paragraphs: the error, perhaps a tip, the usage.
    error, *others = text.strip().split("\n\n")
    tips = [part.strip() for part in others if part.strip().startswith("tip: ")]
    return "; ".join([error.strip(), *(tip[len("tip: ") :] for tip in tips)])


def _split_hint(said: str) -> tuple[str, str]:
    """`WHAT; HINT`, as the program writes it, or a name that it suggests."""
    for mark, skipped in (("; ", "; "), (": did you mean ", ": ")):
        if mark in said:
            message = said[: said.index(mark)]
            return message, said[len(message) + len(skipped) :]
    return said, ""
