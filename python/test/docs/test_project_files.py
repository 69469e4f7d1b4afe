# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workflows and forms are valid, and run what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from docs import commands
from docs.pages import ROOT

yaml = pytest.importorskip("yaml")

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(
    set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"}
)
RECORDS = sorted((ROOT / "docs/Decisions").glob("[0-9]*.md"))


GITHUB = ROOT / ".github"
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": FORMS,
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE/config.yml"],
    "dependabot": [GITHUB / "dependabot.yml"],
}


def load(path) -> dict[Any, Any]:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def steps(workflow) -> list[dict[str, Any]]:
    return [step for job in load(workflow)["jobs"].values() for step in job["steps"]]


def check_schema(schema: str, *files) -> subprocess.CompletedProcess[str]:
    """Compares files with one of the schemas that the package brings: it asks no network."""
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_of_github(schema):
    run = check_schema(schema, *SCHEMAS[schema])
    assert run.returncode == 0, run.stdout + run.stderr


def test_schema_finds_a_mistake(tmp_path):
    """A key that GitHub does not know would make it ignore the whole file."""
    text = (GITHUB / "workflows/check.yml").read_text()
    wrong = tmp_path / "check.yml"
    wrong.write_text(text.replace("timeout-minutes:", "timeout-minute:"))
    run = check_schema("github-workflows", wrong)
    assert run.returncode == 1 and "timeout-minute" in run.stdout + run.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_is_complete(workflow):
    content = load(workflow)
    # YAML 1.1 reads the key `on` as a boolean.
    assert content["name"] == workflow.stem and content[True]
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert job["timeout-minutes"] <= 180
        assert job["runs-on"] == "ubuntu-24.04"
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_what_there_is(workflow):
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
            continue
        checked = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        for line in step["run"].splitlines():
            if line.startswith("tools/"):
                assert commands.what_is_wrong(line.split()) == ""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_keeps_what_was_compiled(workflow):
    """A cache is kept from where ccache writes it. In a container, `github.workspace` and `runner`
    name folders of the system around it, which are elsewhere there."""
    for job in load(workflow)["jobs"].values():
        assert job["container"] == "debian:12"
        assert not re.search(r"\$\{\{.*\b(github\.workspace|runner\.)", workflow.read_text())
        kept = [
            step["with"]["path"]
            for step in job["steps"]
            if step.get("uses", "").startswith("actions/cache@")
        ]
        folder = job.get("env", {}).get("CCACHE_DIR")
        assert kept == ([folder] if folder else [])
        assert folder is None or folder.startswith("/")
    # What others install is compiled from the sources and nothing else.
    assert ("actions/cache" in workflow.read_text()) == (workflow.stem != "wheels")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_leaves_no_credentials(workflow):
    checkouts = [s for s in steps(workflow) if s.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 1 and checkouts[0]["with"]["persist-credentials"] is False


def test_each_check_is_run():
    """One workflow runs all of tools/check, one the sanitizers by a schedule."""
    text = {path.stem: path.read_text() for path in WORKFLOWS}
    assert "run: tools/check\n" in text["check"] and "pull_request" in text["check"]
    assert "tools/dev/check_sanitized.sh" in text["sanitizers"] and "cron:" in text["sanitizers"]
    assert "tools/wheel" in text["wheels"]


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_form_is_complete(form):
    content = load(form)
    assert {"name", "description", "labels", "body"} <= set(content)
    for item in content["body"]:
        assert item["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert item["type"] == "markdown" or (item["id"] and item["attributes"]["label"])
    ids = [item["id"] for item in content["body"] if "id" in item]
    assert len(ids) == len(set(ids))
    assert any(item.get("validations", {}).get("required") for item in content["body"])


def test_there_are_forms():
    assert {form.stem for form in FORMS} >= {"bug", "slow", "wish"}


def test_decisions_are_numbered_and_listed():
    index = (ROOT / "docs/Decisions/README.md").read_text()
    for number, record in enumerate(RECORDS, 1):
        title, *_ = record.read_text().splitlines()
        assert title.startswith(f"# {number:04}: ") and record.name.startswith(f"{number:04}-")
        assert f"[{number:04}]({record.name}) | {title.partition(': ')[2]} |" in index
        for part in ("## The question", "## What was decided", "## What follows"):
            assert part in record.read_text()


def test_changelog_has_its_form():
    """Versions in falling order below what is unreleased, with the usual kinds of changes."""
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.M)
    assert versions[0] == ("Unreleased", "")
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", name) and date for name, date in versions[1:])
    kinds = set(re.findall(r"^### (.+)$", text, re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
