"""Runs and their tables are what the program says of them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path

import perflab

from laboratory import HOSTILE, RecordedCase, rows


class ArchiveTest(RecordedCase):
    def test_the_archive_is_that_of_the_program(self) -> None:
        self.assertEqual(self.archive.path, self.laboratory.home / "archive")
        script = "import perflab; print(perflab.open().path)"
        top = self.laboratory.home / "found, the latest: here"
        (top / "perflab-archive").mkdir(parents=True)
        (top / "deep" / "deeper").mkdir(parents=True)
        environment = {name: value for name, value in os.environ.items() if name != "PERFLAB_ARCHIVE"}
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
        environment["HOME"] = environment["XDG_DATA_HOME"] = str(self.laboratory.home / "nobody")

        def found(folder: Path) -> str:
            command = [sys.executable, "-c", script]
            said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
            return said.stdout.decode().strip()

        archive = top / "perflab-archive"
        self.assertEqual(found(top), str(archive))
        self.assertEqual(found(top / "deep" / "deeper"), str(archive))
        # Where there is none, it says where one will be.
        elsewhere = self.laboratory.home / "elsewhere"
        elsewhere.mkdir()
        self.assertEqual(found(elsewhere), str(elsewhere / "perflab-archive"))
        (self.laboratory.home / "nobody" / "perflab" / "archive").mkdir(parents=True)
        self.assertEqual(found(elsewhere), str(self.laboratory.home / "nobody" / "perflab" / "archive"))
        # With runs in it, and a path that could be mistaken for what is said behind it.
        os.rmdir(archive)
        os.symlink(self.archive.path, archive)
        self.assertEqual(found(top), str(archive))

    def test_runs_are_those_of_the_list(self) -> None:
        listed = self.laboratory.say_json("list")
        runs = self.archive.runs()
        self.assertEqual(len(runs), 4)
        self.assertEqual([run.id for run in runs], [row["run"] for row in listed])
        self.assertEqual([run.label for run in runs], [row["label"] for row in listed])
        self.assertEqual([run.study for run in runs], [row["study"] for row in listed])
        self.assertEqual([run.bytes for run in runs], [row["size"] for row in listed])
        self.assertEqual([run.ended for run in runs], [row["iterations"] for row in listed])
        begun = [run.begun.strftime("%Y-%m-%dT%H:%M:%S.%f") if run.begun else "" for run in runs]
        self.assertTrue(all(row["begun"].startswith(time.rstrip("0")) for row, time in zip(listed, begun)))
        self.assertEqual(runs.labels, ["before", "after", HOSTILE, "traced"])
        self.assertEqual(self.archive.latest, runs[-1])
        self.assertEqual(list(runs[1:3]), list(runs)[1:3])

    def test_runs_are_chosen(self) -> None:
        labels = [run.label for run in self.archive.runs(last=2)]
        self.assertEqual(labels, [HOSTILE, "traced"])
        for study in (HOSTILE, "mine.toml", "mine"):
            self.assertEqual(len(self.archive.runs(study=study)), 3, study)
        self.assertEqual([run.label for run in self.archive.runs(study="mine", last=2)], ["after", HOSTILE])
        self.assertEqual(len(self.archive.runs(study="nosuch")), 0)
        self.assertEqual(len(self.archive.runs(last=0)), 0)
        error = self.refusal(perflab.UsageError, self.archive.runs, label="befor")
        self.assertEqual(error.exit_code, 2)
        self.assertIn("befor", error.message)
        self.assertIn("before", error.hint)
        self.assertEqual(str(error), f"{error.message}; {error.hint}")

    def test_tables_are_those_of_sql(self) -> None:
        engine = os.environ.get("PERFLAB_SQL_ENGINE", sys.executable)
        if importlib.util.find_spec("duckdb") is None:
            self.skipTest("no duckdb")
        runs = self.archive.runs()
        series = {"series.vmstat": runs[:3].series("vmstat"), "edges.stat": runs[:3].edges("stat")}
        events = {"events.optrace": runs[3:].events("optrace")}
        facts = {"facts": runs.facts()}
        tables = {"samples": runs.samples(), "iterations": runs.iterations(), **series, **events, **facts}
        for name, table in tables.items():
            words = ["query", "--engine", engine, f"SELECT * FROM {name}"]
            asked = self.laboratory.say_json(*words)
            self.assertGreater(len(asked), 0, name)
            self.assertEqual(sorted(table.column_names), sorted(asked[0]), name)
            key = json.dumps
            ours = sorted((json.loads(key(row)) for row in rows(table)), key=lambda row: key(row, sort_keys=True))
            self.assertEqual(ours, sorted(asked, key=lambda row: key(row, sort_keys=True)), name)

    def test_samples_are_the_exported_ones_to_the_last_digit(self) -> None:
        exported = self.laboratory.say("export", "before", "--to", "csv", "--output", "-")
        head, *lines = exported.splitlines()
        place = head.split(",").index("value")
        values = [float(line.split(",")[place]) for line in lines]
        self.assertEqual(self.run_of("before").samples()["value"].to_pylist(), values)

    def test_columns_have_their_units(self) -> None:
        run = self.run_of("before")
        self.assertEqual(run.tables("series"), ["stat", "vmstat"])
        self.assertEqual((run.tables("events"), self.run_of("traced").tables("events")), ([], ["optrace"]))
        columns = {column.name: column for column in perflab.list_columns(run.series("vmstat"))}
        self.assertEqual((columns["time_ns"].unit, columns["time_ns"].optional), ("ns", False))
        self.assertEqual((columns["pgfault"].kind, columns["nr_free_pages"].unit), ("counter", "pages"))
        some = run.samples(columns=["metric", "value"])
        self.assertEqual(some.column_names, ["metric", "value"])
        error = self.refusal(perflab.ArchiveError, run.samples, columns=["nosuch"])
        self.assertIn("value", error.hint)
        self.assertIn("vmstat", self.refusal(perflab.ArchiveError, run.series, "../../x").hint)

    def test_a_run_says_what_it_was(self) -> None:
        run = self.run_of("before")
        self.assertEqual(run.factors, {"pages": ("ordinary", "huge")})
        self.assertEqual(run.facts["kernel.release"], os.uname().release)
        self.assertTrue(run.facts.source("kernel.release"))
        self.assertEqual((run.status, run.study_file), ("finished", "mine.toml"))

    def test_other_libraries_take_the_tables(self) -> None:
        samples = self.run_of("before").samples()
        if importlib.util.find_spec("pandas"):
            self.assertEqual(len(samples.to_pandas()), samples.num_rows)
        if importlib.util.find_spec("polars"):
            import polars

            self.assertEqual(len(polars.DataFrame(polars.from_arrow(samples))), samples.num_rows)


class DamageTest(RecordedCase):
    def test_a_flipped_bit_is_no_number(self) -> None:
        copy = self.laboratory.copy()
        run = copy.runs(label="before")[0]
        path = run.path / "samples.parquet"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        error = self.refusal(perflab.ArchiveError, run.samples)
        self.assertIn(str(path), error.message)
        self.assertGreater(run.iterations().num_rows, 0)
        path.unlink()
        self.refusal(perflab.ArchiveError, run.samples)

    def test_a_damaged_run_is_listed_and_told(self) -> None:
        copy = self.laboratory.copy()
        first = copy.runs()[0]
        (first.path / "run.json").write_text("{", encoding="utf-8")
        damaged = copy.runs()[0]
        self.assertEqual((damaged.id, damaged.status), (first.id, "damaged"))
        self.assertTrue(damaged.problem)
        self.refusal(perflab.ArchiveError, damaged.samples)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            samples = copy.runs().samples()
        self.assertEqual(len(set(samples["run"].to_pylist())), 3)
        self.assertEqual([first.id in str(one.message) for one in caught], [True])
        self.assertIn(first.id, copy._repr_html_())

    def test_what_is_newer_or_goes_on_is_told(self) -> None:
        copy = self.laboratory.copy()
        for key, value in {"format": 99, "status": "running"}.items():
            run = copy.runs(label="after")[0]
            path = run.path / "run.json"
            kept = path.read_text(encoding="utf-8")
            path.write_text(json.dumps({**json.loads(kept), key: value}), encoding="utf-8")
            self.refusal(perflab.ArchiveError, run.samples)
            path.write_text(kept, encoding="utf-8")

    def test_an_empty_archive_is_empty(self) -> None:
        archive = perflab.open(self.laboratory.home / "nothing")
        self.assertEqual((len(archive.runs()), archive.runs().samples().num_rows), (0, 0))
        with self.assertRaises(perflab.UsageError):
            archive.latest
        self.refusal(perflab.UsageError, perflab.open, self.laboratory.home / "mine.toml")


class ProgramTest(RecordedCase):
    def test_errors_have_the_class_of_their_exit_code(self) -> None:
        program = self.archive.program
        self.assertEqual(program.version(), perflab.__version__)
        error = self.refusal(perflab.UsageError, program.run, ["compare", "--bogus"])
        self.assertEqual((error.exit_code, error.command[0]), (2, str(program.path)))
        self.assertIn("--bogus", error.message)
        self.assertNotIn("Usage", str(error))
        words = ["query", "--engine", "/nowhere/duckdb", "SELECT 1"]
        self.assertEqual(self.refusal(perflab.EnvironmentRefusedError, program.run, words).exit_code, 3)
        guard = ["compare", "before", "after", "--fail-if", "worse,better,unclear", "--fail-on-differs"]
        try:
            program.run(guard)
        except perflab.RegressionError as error:
            self.assertEqual(error.exit_code, 5)
        missing = self.refusal(perflab.ProgramMissingError, perflab.Program, "/nowhere/perflab")
        self.assertIn("/nowhere/perflab", missing.message)

    def test_a_program_that_is_another_is_told(self) -> None:
        for said, code, kind in [
            ("no JSON", 0, perflab.UnexpectedError),
            ("", 3, perflab.EnvironmentRefusedError),
            ("[]", 0, perflab.UnexpectedError),
            ('{"format": 99}', 0, perflab.UnexpectedError),
            ('{"format": 1, "rows": {}}', 0, perflab.UnexpectedError),
        ]:
            path = self.laboratory.home / "other"
            path.write_text(f"#!/bin/sh\nprintf '%s' '{said}'\nexit {code}\n", encoding="utf-8")
            path.chmod(0o755)
            archive = perflab.open(self.archive.path, program=path)
            self.refusal(kind, archive.compare, "before", "after")


if __name__ == "__main__":
    unittest.main()
