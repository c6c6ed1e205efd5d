"""Comparisons have the words and figures of the command line, to the last digit."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import perflab
from perflab import comparison_document

from laboratory import HOSTILE, RecordedCase

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "compare.schema.json"

#: Options of Archive.compare, and the words of the command line that they stand for.
ASKED: list[tuple[tuple[str, ...], dict[str, Any], list[str]]] = [
    (("before", "after"), {}, []),
    (("before", "after", "@latest~1"), {"baseline": "after"}, ["--baseline", "after"]),
    (("before",), {"by": "pages"}, ["--by", "pages"]),
    (("before",), {"by": "pages", "baseline": "huge"}, ["--by", "pages", "--baseline", "huge"]),
    (("before",), {"by": "pages", "monitor": "vmstat"}, ["--by", "pages", "--monitor", "vmstat"]),
    (("before", "after"), {"metric": ["acc*"], "sort": "p"}, ["--metric", "acc*", "--sort", "p"]),
    (
        ("before", "after"),
        {"where": "pages=huge", "confidence": 0.995, "margin": 0.07},
        ["--where", "pages=huge", "--confidence", "99.5%", "--margin", "7%"],
    ),
    (
        ("before", "after"),
        {"across": True, "boots_differ": True, "warmup": "auto", "workload": "memory-sweep", "confidence": "90%"},
        ["--across", "--boots-differ", "--warmup", "auto", "--workload", "memory-sweep", "--confidence", "90%"],
    ),
]


class ComparisonTest(RecordedCase):
    def test_every_figure_is_that_of_the_command_line(self) -> None:
        for sides, options, words in ASKED:
            printed = self.laboratory.say_json("compare", *sides, *words)
            found = self.archive.compare(*sides, **options)
            self.assertEqual(found.document, printed)
            self.assertGreater(len(found.rows), 0)
            self.hold(found, printed, "comparison")

    def hold(self, value: Any, printed: Any, place: str) -> None:
        """A value holds what JSON says, all of it, and nothing else."""
        if isinstance(value, perflab.Diagnostic):
            self.assertEqual(
                {**value.details, "kind": value.kind, "message": value.message, "advice": value.advice}, printed
            )
        elif dataclasses.is_dataclass(value):
            own = {"document", "archive", "words"} if isinstance(value, perflab.Comparison) else set()
            names = {field.name: field for field in dataclasses.fields(value) if field.name not in own}
            keys = {key.replace("-", "_"): key for key in printed}
            self.assertLessEqual(set(keys), set(names), place)
            for name, field in names.items():
                if name in keys:
                    self.hold(getattr(value, name), printed[keys[name]], f"{place}.{name}")
                else:
                    self.assertEqual(getattr(value, name), field.default, f"{place}.{name}")
        elif isinstance(value, tuple):
            self.assertEqual(len(value), len(printed), place)
            for at, (one, other) in enumerate(zip(value, printed)):
                self.hold(one, other, f"{place}[{at}]")
        else:
            self.assertEqual(value, printed, place)
            if isinstance(value, float):
                self.assertEqual(repr(value), repr(float(printed)), place)

    def test_rows_have_the_words_of_the_command_line(self) -> None:
        for sides, options, words in ASKED:
            lines = self.laboratory.say("--format=short", "--quiet", "compare", *sides, *words).splitlines()
            found = self.archive.compare(*sides, **options)
            self.assertEqual(len(found.deciding_rows), len(lines))
            for row, text, line in zip(found.deciding_rows, found.row_texts, lines):
                self.assertIsNotNone(text, line)
                assert text is not None
                shown = ", ".join(part for part in text if part)
                self.assertTrue(line.endswith(f": {shown}"), (line, text))
                self.assertTrue(text.verdict.startswith(row.word) or "middle" in text.verdict, (line, row.word))

    def test_the_table_is_that_of_the_command_line(self) -> None:
        found = self.archive.compare("before", "after")
        self.assertEqual(found.text(), self.laboratory.say("--quiet", "compare", "before", "after"))
        self.assertIn("| metric |", found.markdown())

    def test_words_are_those_of_csv(self) -> None:
        printed = self.laboratory.say("--format=csv", "--quiet", "compare", "before", "--by", "pages").splitlines()
        titles, row = (line.split(",") for line in printed)
        table = perflab.compare(self.run_of("before"), by="pages").to_arrow()
        (ours,) = table.to_pylist()
        said = dict(zip(titles, row))
        for title, name in {"change": "change", "low": "low", "high": "high", "p": "p", "q": "q"}.items():
            self.assertEqual(ours[name], float(said[title]) if said[title] else None, title)
        self.assertEqual((ours["verdict"], str(ours["baseline_n"])), (said["verdict"], said["baseline_n"]))

    def test_sides_are_runs_or_what_the_command_line_takes(self) -> None:
        before, after = self.run_of("before"), self.run_of("after")
        by_run, by_label = perflab.compare(before, after), perflab.compare("before", "after")
        self.assertEqual(by_run.rows, by_label.rows)
        # A run of another archive is named by its path.
        copied = self.laboratory.copy().runs(label="after")[0]
        by_path = perflab.compare(before, copied)
        self.assertEqual([run.id for run in by_path.runs], [before.id, after.id])
        hostile = self.archive.compare("before", HOSTILE)
        self.assertEqual(hostile.candidates, (HOSTILE,))

    def test_mistakes_are_told(self) -> None:
        error = self.refusal(perflab.UsageError, self.archive.compare, "befor", "after")
        self.assertEqual((error.exit_code, error.hint), (2, "did you mean `before`?"))
        self.refusal(perflab.UsageError, self.archive.compare, "before", by="pages,other")
        self.refusal(perflab.UsageError, self.archive.compare, "--schema", "after")
        self.refusal(perflab.UsageError, self.archive.compare, "before", "after", confidence=2)

    def test_pictures_are_those_of_the_program(self) -> None:
        drawn = self.archive.plot("ecdf", self.run_of("before"), by="pages", size="600x300")
        self.assertTrue(drawn.svg.startswith("<svg"))
        self.assertIn("memory-sweep", drawn.describe())
        path = self.laboratory.home / "drawn.svg"
        drawn.save(path)
        printed = self.laboratory.say("plot", "ecdf", "before", "--by", "pages", "--size", "600x300", "-o", "-")
        self.assertEqual(path.read_text(encoding="utf-8"), printed)
        self.refusal(perflab.UsageError, self.archive.plot, "ecdf", "before", metric="nosuch")


class SchemaTest(RecordedCase):
    """The classes are those of the schema: a field for each key, of its type."""

    def test_classes_have_the_keys_of_the_schema(self) -> None:
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        definitions = {**schema["$defs"], "ComparisonDocument": schema}
        held = 0
        for name, definition in definitions.items():
            if "properties" not in definition or name == "DiagnosticDocument":
                continue
            found = getattr(comparison_document, name)
            fields = {field.name: field for field in dataclasses.fields(found)}
            keys = {key.replace("-", "_"): key for key in definition["properties"]}
            self.assertEqual(set(fields), set(keys), name)
            hints = typing.get_type_hints(found)
            for field_name, key in keys.items():
                is_required = fields[field_name].default is dataclasses.MISSING
                self.assertEqual(is_required, key in definition["required"], f"{name}.{key}")
                property = definition["properties"][key]
                self.assertEqual(_name_type(hints[field_name]), _name_schema(property, definitions), f"{name}.{key}")
            held += 1
        self.assertGreaterEqual(held, 20)


def _name_type(hint: Any) -> str:
    """A type of Python as the schema has it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return f"{_name_type(arguments[0])} or null"
    if origin is tuple:
        return f"list of {_name_type(arguments[0])}"
    if origin is typing.Literal:
        return " | ".join(sorted(arguments))
    if origin is not None:
        return f"object of {_name_type(arguments[1])}"
    names = {str: "string", float: "number", int: "integer", bool: "boolean"}
    return names.get(hint) or str(hint.__name__)


def _name_schema(schema: Any, definitions: Any) -> str:
    """A type of the schema, by the names of its definitions."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        target = definitions[name]
        if name == "DiagnosticDocument":
            return "Diagnostic"
        if "oneOf" in target:
            return " | ".join(sorted(one["const"] for one in target["oneOf"]))
        return name if "properties" in target else _name_schema(target, definitions)
    if "anyOf" in schema:
        (one,) = (one for one in schema["anyOf"] if one.get("type") != "null")
        return f"{_name_schema(one, definitions)} or null"
    kind = schema["type"]
    if isinstance(kind, list):
        (one,) = (one for one in kind if one != "null")
        return f"{_name_schema({**schema, 'type': one}, definitions)} or null"
    if kind == "array":
        return f"list of {_name_schema(schema['items'], definitions)}"
    if kind == "object":
        return f"object of {_name_schema(schema['additionalProperties'], definitions)}"
    return str(kind)
