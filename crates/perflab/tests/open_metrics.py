"""Reads OpenMetrics by the reader of the project prometheus_client, which refuses what the format does not allow; prints the samples as JSON."""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

text = open(sys.argv[1], encoding="utf-8").read()
samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
json.dump([{"name": one.name, "labels": one.labels, "value": one.value} for one in samples], sys.stdout)
