"""play_action.py ACTION INPUT=VALUE...: runs the shell steps of a composite action as GitHub's runner would.

Prints what they print, then the action's outputs and its job summary; exits as the first step that failed."""
import os
import re
import subprocess
import sys
import tempfile

import yaml

with open(sys.argv[1]) as file:
    action = yaml.safe_load(file)
given = dict(word.split("=", 1) for word in sys.argv[2:])
unknown = set(given) - set(action["inputs"])
missing = {name for name, each in action["inputs"].items() if each.get("required")} - set(given)
if unknown or missing:
    sys.exit(f"unknown inputs {sorted(unknown)}, missing {sorted(missing)}")
values = {f"inputs.{name}": given.get(name, str(each.get("default", ""))) for name, each in action["inputs"].items()}
values["github.action_path"] = os.path.dirname(os.path.abspath(sys.argv[1]))


def fill(text):
    return re.sub(r"\$\{\{ *([a-z0-9_.-]+) *\}\}", lambda found: values[found[1]], text)


scratch = tempfile.mkdtemp()
paths = {name: os.path.join(scratch, name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
code = 0
for step in action["runs"]["steps"]:
    if "run" not in step or code:
        continue
    open(paths["GITHUB_OUTPUT"], "w").close()
    environment = {name: fill(text) for name, text in step.get("env", {}).items()}
    script = os.path.join(scratch, "step.sh")
    with open(script, "w") as file:
        file.write(fill(step["run"]))
    code = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
                          env={**os.environ, **paths, "RUNNER_TEMP": scratch, **environment}).returncode
    with open(paths["GITHUB_OUTPUT"]) as file:
        for line in file:
            name, value = line.rstrip("\n").split("=", 1)
            values[f"steps.{step['id']}.outputs.{name}"] = value
for name, output in action.get("outputs", {}).items():
    print(f"output {name}={re.sub(r'[$]{{ *([a-z0-9_.-]+) *}}', lambda found: values.get(found[1], ''), output['value'])}")
if os.path.exists(paths["GITHUB_STEP_SUMMARY"]):
    with open(paths["GITHUB_STEP_SUMMARY"]) as file:
        print("summary: " + file.read())
sys.exit(code)
