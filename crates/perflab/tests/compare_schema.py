"""Validates comparisons, one a line of the first file, by the JSON Schema of the second, which must know every key of theirs."""

import json
import sys

import jsonschema


def close(node):
    """No object has a key that its schema does not name."""
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node:
            node.setdefault("unevaluatedProperties", False)
        for child in node.values():
            close(child)
    elif isinstance(node, list):
        for child in node:
            close(child)


def without_nested_closures(node):
    """A branch of `oneOf` or `allOf` sees a part of the keys only: what holds it says which are known."""
    if isinstance(node, dict):
        for word in ("oneOf", "allOf", "anyOf"):
            if "properties" in node or "unevaluatedProperties" in node:
                for branch in node.get(word, []):
                    branch.pop("unevaluatedProperties", None)
        for child in node.values():
            without_nested_closures(child)
    elif isinstance(node, list):
        for child in node:
            without_nested_closures(child)


with open(sys.argv[2]) as file:
    schema = json.load(file)
close(schema)
without_nested_closures(schema)
validator = jsonschema.Draft202012Validator(schema)
with open(sys.argv[1]) as file:
    documents = [json.loads(line) for line in file]
for number, document in enumerate(documents, 1):
    errors = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]
    assert not errors, f"comparison {number}:\n" + "\n".join(errors)
    document["rows"][0]["verdict"] = "no such word"
    assert not validator.is_valid(document)
print(len(documents))
