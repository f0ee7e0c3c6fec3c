"""Pages that users look for: what they name exists, and the files of docs/deploy are taken."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from capdex.codes import error_codes, reason_codes
from capdex_cli.config.load import unused_variables
from capdex_indexer.node.signals import run_until_stopped

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "docs/deploy"
TROUBLE = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
# Codes of a node's state, and of calls: the tables of docs/operations.md and of the router.
OTHERS = {"CODE", "REASON", "NAME", "HOST", "NO_WRITER", "SSL_CERT_FILE"}


def test_every_code_of_the_troubleshooting_page_is_one_of_the_program() -> None:
    named = set(re.findall(r"`(?:error\[)?([A-Z][A-Z_]{3,})\b", TROUBLE))
    named -= {name for name in named if name.startswith("CAPDEX")}
    assert len(named) > 25
    assert named - OTHERS <= {*error_codes(), *reason_codes()}


def test_a_node_reads_every_variable_of_the_unit_and_of_the_manifests() -> None:
    texts = [path.read_text("utf-8") for path in DEPLOY.iterdir()]
    named = {name for text in texts for name in re.findall(r"CAPDEX_\w+", text)}
    assert len(named) > 8
    assert unused_variables(dict.fromkeys(named, "x")) == []


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "capdex-node.service").read_text("utf-8")
    unit = tmp_path / "capdex-node.service"
    unit.write_text(text.replace("/opt/capdex/bin/capdex", "/bin/true"), "utf-8")
    done = subprocess.run(
        [program, "--man=no", "verify", str(unit)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_takes_the_end_of_a_node_that_it_stops_for_a_success() -> None:
    text = (DEPLOY / "capdex-node.service").read_text("utf-8")
    (successes,) = re.findall("^SuccessExitStatus=(.+)$", text, re.MULTILINE)

    async def stopped_by_systemd() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    assert str(run_until_stopped(stopped_by_systemd())) in successes.split()


def test_no_service_of_a_cluster_sets_a_variable_of_a_node() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    services = [x["metadata"]["name"] for x in documents if x["kind"] == "Service"]
    variables = [name.upper().replace("-", "_") + "_PORT" for name in services]
    assert len(unused_variables(dict.fromkeys(variables, "x"))) == 2
    pods = [x["spec"]["template"]["spec"] for x in documents if x["kind"] == "Deployment"]
    assert [pod["enableServiceLinks"] for pod in pods] == [False, False]


def test_a_namespace_that_takes_restricted_pods_alone_takes_those_of_the_manifests() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    pods = [x["spec"]["template"]["spec"] for x in documents if x["kind"] == "Deployment"]
    for pod in pods:
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["seccompProfile"]) == (
            True,
            {"type": "RuntimeDefault"},
        )
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}


def test_each_pod_of_the_manifests_is_probed_and_may_write_where_a_node_does() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    pods = [x["spec"]["template"]["spec"] for x in documents if x["kind"] == "Deployment"]
    assert [pod["containers"][0]["args"][-1] for pod in pods] == ["writer", "reader"]
    for pod in pods:
        (container,) = pod["containers"]
        for probe, path in (("livenessProbe", "/health"), ("readinessProbe", "/ready")):
            request = container[probe]["httpGet"]
            assert request["path"] == path
            assert request["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {"/data", "/data/blocks", "/tmp"}  # noqa: S108 - a path in a container
        assert container["securityContext"]["readOnlyRootFilesystem"]
