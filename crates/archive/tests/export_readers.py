"""Reads every export with a reader that is not ours: python export_readers.py FOLDER SCHEMA"""
import json
import sys
from pathlib import Path

import jsonschema
import pandas
from junitparser import JUnitXml
from kcidb_io.schema import V5_3
from prometheus_client.openmetrics.parser import text_string_to_metric_families

folder, schema = Path(sys.argv[1]), Path(sys.argv[2])
rows = pandas.read_csv(folder / "csv")
stored = pandas.read_parquet(folder / "parquet")
assert list(rows["value"]) == list(stored["value"]), "csv and parquet"
assert list(rows["metric"]) == list(stored["metric"])

document = json.loads((folder / "json").read_text())
jsonschema.validate(document, json.loads(schema.read_text()))
assert [sample["value"] for sample in document["samples"]] == list(stored["value"])
wanted = stored.groupby(["case", "metric", "unit"])["value"].median()
for summary in document["summaries"]:
    assert wanted[(summary["case"], summary["metric"], summary["unit"])] == summary["median"], summary

for measures in json.loads((folder / "bmf").read_text()).values():
    for measure in measures.values():
        assert set(measure) in ({"value"}, {"value", "lower_value", "upper_value"})
        assert measure.get("lower_value", measure["value"]) <= measure["value"] <= measure.get("upper_value", measure["value"])

V5_3.validate(json.loads((folder / "kcidb").read_text()))

suites = JUnitXml.fromfile(str(folder / "junit"))
assert sum(suite.tests for suite in suites) == len([case for suite in suites for case in suite])

families = list(text_string_to_metric_families((folder / "openmetrics").read_text()))
medians = [sample for family in families for sample in family.samples if sample.labels["statistic"] == "median"]
assert len(medians) == len(document["summaries"]), (len(medians), len(document["summaries"]))
print("read", len(rows), "samples,", len(medians), "medians")
