"""Runs the commands of a CI template in the current folder, as the service would.

  run_template.py github FILE EVENT [NAME=VALUE...]
  run_template.py gitlab FILE [NAME=VALUE...]

What needs a network is left out: steps that use an action, and steps and scripts that install. Everything else in
the file has to be something this script knows, so that no key is misspelt unnoticed. Prints the outcome of each step
and exits with the status of the first that failed.
"""

import os
import re
import subprocess
import sys

import yaml

STEP_KEYS = {"name", "uses", "with", "run", "if"}
# Not actions/cache, which saves nothing when a step has failed.
ACTIONS = {
    "actions/checkout@v4",
    "actions/cache/restore@v4",
    "actions/cache/save@v4",
    "github/codeql-action/upload-sarif@v3",
}
JOB_KEYS = {"runs-on", "container", "defaults", "env", "steps"}
GITLAB_KEYS = {"stage", "image", "variables", "cache", "rules", "before_script", "script", "artifacts"}


def known(mapping, keys, where):
    if unknown := set(mapping) - keys:
        sys.exit(f"{where}: unknown keys {sorted(unknown)}")


def run(script, environment):
    home = os.path.join(os.getcwd(), ".home")
    os.makedirs(home, exist_ok=True)
    # The template may change the user's settings of git.
    environment = {**os.environ, **environment, "HOME": home, "GIT_CONFIG_GLOBAL": os.path.join(home, ".gitconfig")}
    return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], env=environment).returncode


def holds(condition, event):
    condition = condition.replace("!cancelled()", "True").replace("always()", "True").replace("&&", " and ")
    condition = condition.replace("github.event_name", repr(event))
    if not re.fullmatch(r"('\w+' == '\w+'|True| and |\s)+", condition):
        sys.exit(f"no condition this test knows: {condition}")
    return eval(condition)  # pylint: disable=eval-used


def github(path, event, environment):
    with open(path, encoding="utf-8") as stream:
        workflow = yaml.safe_load(stream)
    # YAML 1.1 reads the key `on` as true.
    known(workflow, {"name", True, "permissions", "jobs"}, path)
    if event not in workflow[True]:
        sys.exit(f"{path} does not run on {event}")
    status = 0
    for name, job in workflow["jobs"].items():
        known(job, JOB_KEYS, name)
        # In a job with a container this is the folder as the host names it, which is not where the steps run.
        workspace = os.path.join(os.getcwd(), ".home", "host") if "container" in job else os.getcwd()
        values = {"github.workspace": workspace, "github.ref": "ref", "github.sha": "sha"}
        for key, value in job["env"].items():
            environment.setdefault(key, re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda m: values[m.group(1)], str(value)))
        for step in job["steps"]:
            title = step.get("name", step.get("uses"))
            known(step, STEP_KEYS, title)
            if "uses" in step and step["uses"] not in ACTIONS:
                sys.exit(f"{title}: unknown action")
            if "cache/save" in title and step.get("if") != "always()":
                sys.exit(f"{title}: findings would lose the cache")
            if "uses" in step or title.startswith("Install") or not holds(step.get("if", "True"), event):
                print(f"== {title}: left out", flush=True)
                continue
            code = run(step["run"], environment) if status == 0 else 0
            print(f"== {title}: {code}", flush=True)
            status = status or code
        for path in (step["with"]["path"] for step in job["steps"] if "cache/save" in step.get("uses", "")):
            if not os.path.isdir(path) or not os.listdir(path):
                sys.exit(f"{name}: nothing is kept in {path}")
    return status


def gitlab(path, environment):
    with open(path, encoding="utf-8") as stream:
        template = yaml.safe_load(stream)
    status = 0
    for name, job in template.items():
        known(job, GITLAB_KEYS, name)
        if job["cache"].get("when") != "always":
            sys.exit(f"{name}: findings would lose the cache")
        variables = {"CI_PROJECT_DIR": os.getcwd()}
        for key, value in job["variables"].items():
            environment.setdefault(key, value.replace("$CI_PROJECT_DIR", variables["CI_PROJECT_DIR"]))
        if not all(isinstance(line, str) for line in job["before_script"] + job["script"]):
            sys.exit(f"{name}: a line of the script is no string")
        code = run("\n".join(job["script"]), environment)
        print(f"== {name}: {code}", flush=True)
        for report in job["artifacts"]["reports"].values():
            if not os.path.exists(report):
                sys.exit(f"{name}: there is no {report}")
        status = status or code
    return status


def main():
    service, path, *rest = sys.argv[1:]
    event = rest.pop(0) if service == "github" else ""
    environment = dict(assignment.split("=", 1) for assignment in rest)
    sys.exit(github(path, event, environment) if service == "github" else gitlab(path, environment))


main()
