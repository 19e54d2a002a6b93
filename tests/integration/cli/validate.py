"""validate.py SCHEMA DOCUMENTS: by jsonschema, the names of those of a list of {"name", "value"} that are valid."""
import json
import sys

import jsonschema

with open(sys.argv[1]) as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
with open(sys.argv[2]) as file:
    for document in json.load(file):
        error = jsonschema.exceptions.best_match(validator.iter_errors(document["value"]))
        print("valid" if error is None else "wrong", document["name"], "" if error is None else " ".join(error.message.split()))
