"""Tables of the archive, as pyarrow reads them, with the units that perflab wrote beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import ArchiveError

#: Where a table says what its columns are.
COLUMNS = b"perflab.columns"


@dataclass(frozen=True)
class Column:
    """What a column holds."""

    #: its name
    name: str
    #: `1` for keys and bare counts
    unit: str
    #: `key`, `counter` (only grows), `gauge` (goes up and down) or `value`
    kind: str
    #: whether it may be missing in a row
    optional: bool
    #: in a sentence
    meaning: str


def list_columns(table: pa.Table) -> list[Column]:
    """What the columns of a table of perflab's are, in order; those that others added are left out."""
    columns = []
    for field in table.schema:
        about = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        if "perflab.unit" in about:
            optional = about["perflab.optional"] == "true"
            columns.append(
                Column(
                    field.name, about["perflab.unit"], about["perflab.kind"], optional, about["perflab.meaning"]
                )
            )
    return columns


def read_table(
    folder: Path, name: str, hashes: Mapping[str, str], columns: Optional[Sequence[str]] = None
) -> pa.Table:
    """The table `name` of the run in `folder`; one that is not what was written is refused."""
    path = folder / name
    try:
        with pa.memory_map(str(path)) as file:
            content = file.read_buffer()
    except OSError as error:
        raise ArchiveError(f"cannot read {path}: {error}") from error
    expected = hashes.get(name)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise ArchiveError(
            f"{path} is damaged: it is not the file that SHA256SUMS names", "restore it from a copy of the run"
        )
    try:
        known = pq.read_schema(pa.BufferReader(content)).names
        missing = [column for column in columns or () if column not in known]
        if missing:
            raise ArchiveError(f"{path} has no column {', '.join(missing)}", f"it has {', '.join(known)}")
        table = pq.read_table(pa.BufferReader(content), columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path} is no Parquet that can be read: {error}") from error
    return _with_units(table)


def _with_units(table: pa.Table) -> pa.Table:
    """The table with what it says of its columns in the place where Arrow keeps that: at each field."""
    described = json.loads((table.schema.metadata or {}).get(COLUMNS, b"[]"))
    about: dict[str, dict[str, Any]] = {column["name"]: column for column in described}
    fields = []
    for field in table.schema:
        column = about.get(field.name)
        if column is not None:
            field = field.with_metadata(
                {
                    "perflab.unit": str(column.get("unit", "1")),
                    "perflab.kind": str(column.get("kind", "value")),
                    "perflab.optional": "true" if column.get("optional") else "false",
                    "perflab.meaning": str(column.get("meaning", "")),
                }
            )
        fields.append(field)
    return table.cast(pa.schema(fields, metadata=table.schema.metadata))


def join_tables(tables: Iterable[tuple[str, pa.Table]]) -> pa.Table:
    """Tables of several runs as one, the run's id in the column `run` before all others; what a run lacks is null."""
    with_runs = []
    for run, table in tables:
        ids = pa.array([run] * table.num_rows, pa.string())
        # What a file says of itself is not said of all of them.
        with_runs.append(table.add_column(0, "run", ids).replace_schema_metadata(None))
    if not with_runs:
        return pa.table({"run": pa.array([], pa.string())})
    return pa.concat_tables(with_runs, promote_options="default")


def read_hashes(folder: Path) -> dict[str, str]:
    """What SHA256SUMS says of the files of a run; nothing of runs that were closed before there was one."""
    try:
        text = (folder / "SHA256SUMS").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ArchiveError(f"cannot read {folder / 'SHA256SUMS'}: {error}") from error
    lines = (line.split("  ", 1) for line in text.splitlines() if line)
    return {line[1]: line[0] for line in lines if len(line) == 2}
