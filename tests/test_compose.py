"""The image and the compose file keep their promises; no engine is needed to see it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
import yaml

from capdex import __version__
from capdex_cli.main import program
from capdex_indexer.query.search.snapshots import directory_of

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
CADDYFILE = (ROOT / "compose/Caddyfile").read_text("utf-8")
ENV_EXAMPLE = (ROOT / ".env.example").read_text("utf-8")
EXAMPLE = dict(re.findall(r"^(\w+)=(.*)$", ENV_EXAMPLE, re.MULTILINE))
INTERPOLATED = set(re.findall(r"(?<!\$)\$\{(\w+)", str(COMPOSE)))
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").split("\n")

OURS = sorted(name for name, x in SERVICES.items() if x["image"].startswith("capdex:"))
READERS = ("reader-a", "reader-b")
LASTING = sorted(set(SERVICES) - {"deploy"})
each_service = pytest.mark.parametrize("name", sorted(SERVICES))
each_lasting_service = pytest.mark.parametrize("name", LASTING)


def _instructions(word: str) -> list[str]:
    """The arguments of each `word` of the last stage of the Dockerfile."""
    stage = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[-1]
    joined = re.sub(r"\s*\\\n\s*", " ", stage)
    return re.findall(rf"^{word} (.+)$", joined, re.MULTILINE)


def _words(command: str | list[str]) -> list[str]:
    return shlex.split(_filled(command)) if isinstance(command, str) else command


def _mounts(name: str) -> list[tuple[str, str, bool]]:
    """The source and the target of each volume of a service, and whether it may write there."""
    found = []
    for volume in SERVICES[name].get("volumes", []):
        if isinstance(volume, str):
            source, target, *mode = volume.split(":")
            found.append((source, target, mode != ["ro"]))
        else:
            found.append((volume["source"], volume["target"], not volume.get("read_only")))
    return found


def _environment(*names: str) -> dict[str, str]:
    """The environment of `capdex` in the image, and with it that of compose, filled in."""
    values = dict(re.findall(r"(\w+)=(\S+)", " ".join(_instructions("ENV"))))
    for name in names:
        values |= EXAMPLE if SERVICES[name].get("env_file") == ".env" else {}
        values |= {key: str(value) for key, value in SERVICES[name]["environment"].items()}
    return {key: _filled(value) for key, value in values.items()}


def _filled(text: str) -> str:
    """A text of the compose file as compose reads it beside the example of the settings."""

    def fill(match: re.Match[str]) -> str:
        return EXAMPLE.get(match[1]) or (match[2] if match[2] is not None else "filled")

    return re.sub(r"\$\{(\w+)(?::[-?]([^}]*))?\}", fill, text)


# the compose file -----------------------------------------------------------------------------


def test_every_image_of_others_is_pinned_to_one_version_and_to_its_bytes() -> None:
    images = [service["image"] for name, service in SERVICES.items() if name not in OURS]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    pinned = re.compile(r"[a-z./-]+:v?\d+\.\d+(\.\d+)?(-[a-z-]+)?@sha256:[0-9a-f]{64}")
    assert [x for x in images if not pinned.fullmatch(x)] == []
    assert "syntax=" not in DOCKERFILE  # it would name one more image, which builds ours


def test_our_image_carries_the_version_of_the_package() -> None:
    assert SERVICES["node"]["image"] == f"capdex:{__version__}"


@each_lasting_service
def test_a_lasting_service_is_watched_restarted_and_reaped(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "start_period", "retries"} <= set(service["healthcheck"])
    assert (service["restart"], service["init"]) == ("unless-stopped", True)


@each_service
def test_a_service_runs_without_root_or_privileges_in_bounded_memory(name: str) -> None:
    service = SERVICES[name]
    assert int(service["user"].split(":")[0]) >= 100
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])


@each_service
def test_ports_are_bound_to_this_machine_and_can_be_others(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        bind = r"(127\.0\.0\.1|\$\{(KUBO_SWARM_BIND|CAPDEX_PUBLIC_BIND):-127\.0\.0\.1\})"
        assert re.fullmatch(rf"{bind}:\$\{{[A-Z_]+_PORT:-\d+\}}:\d+(/tcp|/udp)?", port), port


@each_lasting_service
def test_data_lives_in_a_named_volume_of_its_service(name: str) -> None:
    own, *shared = [source for source, _, _ in _mounts(name) if not source.startswith("./")] or [""]
    if name == "balancer":
        assert own == ""
    else:
        assert own == name
        assert name in COMPOSE["volumes"]
    others = {"node": ["deployments"], "standby": ["deployments", "node"]}
    assert shared == others.get(name, ["node"] if name in READERS else [])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_saves_its_search_in_its_own_volume_and_reads_packages_of_the_node(
    name: str,
) -> None:
    given = _parse(_words(SERVICES[name]["command"]), _environment(name)).params
    blocks = given["blocks"]
    mounts = {target: (source, writable) for source, target, writable in _mounts(name)}
    assert mounts[str(blocks)] == ("node", False)
    saved = directory_of(given["db"], blocks)
    inmost = next(str(x) for x in saved.parents if str(x) in mounts)
    assert mounts[inmost] == (name, True)
    (part,) = [x for x in SERVICES[name]["volumes"] if not isinstance(x, str)]
    assert _parse(["node"], _environment("node")).params["blocks"] == Path(
        "/data", part["volume"]["subpath"]
    )


def test_a_standby_serves_what_the_node_fetched_and_the_node_what_the_standby_did() -> None:
    blocks = _parse(_words(SERVICES["standby"]["command"]), _environment("standby")).params[
        "blocks"
    ]
    mounts = {target: (source, writable) for source, target, writable in _mounts("standby")}
    assert mounts[str(blocks)] == ("node", True)
    (part,) = [x for x in SERVICES["standby"]["volumes"] if not isinstance(x, str)]
    assert Path("/data", part["volume"]["subpath"]) == blocks
    # Its directory is there once the node runs.
    assert SERVICES["standby"]["depends_on"] == {"node": {"condition": "service_healthy"}}


@each_service
def test_files_of_this_repository_are_mounted_to_be_read(name: str) -> None:
    for source, _, writable in _mounts(name):
        if source.startswith("./"):
            assert (ROOT / source).exists()
            assert not writable


def test_the_volume_of_postgres_holds_its_versioned_directory() -> None:
    # From 18 on the image keeps its data below a directory of the major version.
    for name in ("postgres", "replica"):
        assert SERVICES[name]["volumes"][0] == f"{name}:/var/lib/postgresql"


def test_the_node_waits_for_what_it_needs_and_for_the_registry_where_there_is_one() -> None:
    awaited = SERVICES["node"]["depends_on"]
    assert awaited["postgres"] == awaited["kubo"] == {"condition": "service_healthy"}
    optional = {"condition": "service_completed_successfully", "required": False}
    assert awaited["deploy"] == optional
    assert SERVICES["deploy"]["depends_on"] == {"anvil": {"condition": "service_healthy"}}


def test_the_development_chain_starts_in_its_profile_only() -> None:
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["dev"]} == {
        "anvil",
        "deploy",
    }
    assert "COMPOSE_PROFILES=dev\n" in ENV_EXAMPLE


def test_readers_a_replica_and_a_balancer_start_in_their_profile_only() -> None:
    found = {name for name, service in SERVICES.items() if service.get("profiles") == ["scale"]}
    assert found == {*READERS, "replica", "balancer"}
    for name in READERS:
        assert SERVICES[name]["depends_on"]["replica"] == {"condition": "service_healthy"}
        assert SERVICES[name]["ports"] == []  # only the balancer is asked from outside
    assert SERVICES["replica"]["environment"]["PGHOST"] == "postgres"


def test_the_balancer_asks_the_readers_where_they_listen() -> None:
    upstreams = re.search(r"^\s*reverse_proxy (.+) \{$", CADDYFILE, re.MULTILINE)
    assert upstreams is not None
    assert upstreams[1].split() == [f"{name}:8765" for name in READERS]
    for name in READERS:
        context = _parse(_words(SERVICES[name]["command"]), _environment(name))
        assert context.params["port"] == 8765
        assert {*READERS, "balancer"} <= set(context.params["allowed_host"])
        assert "front" in SERVICES[name]["networks"]
        proxy = _filled(SERVICES["balancer"]["networks"]["front"]["ipv4_address"])
        assert context.params["trusted_proxies"] == (proxy,)
    (subnet,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    assert ip_address(proxy) in ip_network(_filled(subnet["subnet"]))
    # Another network, where this one is taken: the same setting stands in all three places.
    places = [subnet["subnet"], SERVICES["balancer"]["networks"]["front"]["ipv4_address"]]
    places += [SERVICES[name]["command"] for name in READERS]
    assert all("${BALANCER_NETWORK:-172.30.87}." in place for place in places)


def test_the_balancer_takes_its_configuration(tmp_path: Path) -> None:
    if shutil.which("caddy") is None:
        pytest.skip("Caddy is missing: run `make dev`")
    done = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", ROOT / "compose/Caddyfile"],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not formatted" not in done.stderr


@pytest.mark.real
def test_the_node_takes_the_registry_that_was_deployed(anvil: Any, tmp_path: Path) -> None:
    """The command of the service `deploy` on a real chain, then the settings of the node."""
    from capdex_cli.config.load import load

    folder = tmp_path / "deployments"
    at = {"http://anvil:8545": anvil.url, "/deployments": str(folder), "/data": str(tmp_path)}
    environment = {key: at.get(x, x) for key, x in _environment("deploy").items()}
    words = [at.get(x, x) for x in _words(SERVICES["deploy"]["command"])]
    done = subprocess.run(
        [sys.executable, "-m", "capdex", *words],
        env=os.environ | environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    assert _environment("node")["CAPDEX_DEPLOYMENT"] == f"/deployments/{file.name}"

    given = _environment("node") | {"CAPDEX_DEPLOYMENT": str(file), "CAPDEX_HOME": str(tmp_path)}
    network = load(environ=given, cwd=tmp_path).need_network("rpc_url", "chain_id", "registry")
    deployed = json.loads(file.read_text("utf-8"))
    assert (network.registry, network.start_block) == (
        deployed["registry"],
        deployed["block_number"],
    )
    assert deployed["block_number"] > 0
    own = {"CAPDEX_REGISTRY": "0x" + "11" * 20}
    assert load(environ=given | own, cwd=tmp_path).need_network().registry == "0x" + "11" * 20


def test_a_deployment_file_that_is_missing_is_named(tmp_path: Path) -> None:
    from capdex.errors import UsageError
    from capdex_cli.config.load import load

    environment = {"CAPDEX_DEPLOYMENT": str(tmp_path / "none.json"), "CAPDEX_HOME": str(tmp_path)}
    with pytest.raises(UsageError, match=r"none\.json"):
        load(environ=environment, cwd=tmp_path)


def test_postgres_is_healthy_when_it_answers_where_the_node_asks() -> None:
    # While its entrypoint makes the database, another server answers on the socket, and ends.
    for name in ("postgres", "replica"):
        assert "--host=127.0.0.1" in SERVICES[name]["healthcheck"]["test"]


def test_the_page_saves_and_restores_the_containers_by_their_own_users_and_programs() -> None:
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    backup = page.split("\n## Backup\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\$ docker compose (.+)$", backup, re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    # The programs of PostgreSQL name no user and get no password on the way.
    given = SERVICES["postgres"]["environment"]
    assert (given["PGUSER"], given["PGPASSWORD"]) == ("capdex", given["POSTGRES_PASSWORD"])
    # `docker compose cp` would write files of root, in which the node could store no package.
    by_tar = [words for words in commands if "tar" in words]
    assert [words[words.index("-C") + 1] for words in by_tar] == ["/data", "/data"]
    assert all("node" in words and "cp" not in words for words in by_tar)


def test_the_page_replaces_the_database_while_a_standby_and_readers_have_it_open() -> None:
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    section = page.split("\n## Building the index again\n")[1]
    dropped = re.findall(r"`docker compose exec postgres dropdb ([^`]+)`", section)
    assert dropped == ["--force capdex"]


def test_a_proxy_in_front_is_named_to_the_node_and_to_the_balancer() -> None:
    """Else a feed behind TLS has `http://` in its links, and all clients share one rate."""
    given = re.findall(r"^#(\w+_TRUSTED_PROXY)=(.+)$", ENV_EXAMPLE, re.MULTILINE)
    assert [name for name, _ in given] == ["CAPDEX_TRUSTED_PROXY", "BALANCER_TRUSTED_PROXY"]
    environment = _environment("node") | dict(given)
    named = _parse(_words(SERVICES["node"]["command"]), environment).params["trusted_proxies"]
    # Docker gives its first networks parts of this one.
    assert all(ip_address("172.18.0.1") in ip_network(str(network)) for network in named)
    assert list(SERVICES["balancer"]["environment"]) == ["BALANCER_TRUSTED_PROXY"]
    assert "{$BALANCER_TRUSTED_PROXY:127.0.0.1}" in CADDYFILE


def test_kubo_reports_nothing_to_its_makers() -> None:
    assert SERVICES["kubo"]["environment"]["IPFS_TELEMETRY"] == "off"


def test_no_password_stands_in_the_files_and_none_has_a_default() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASS|SECRET|KEY|TOKEN", key):
                assert re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?[^}]+\}", str(value)), key
    assert re.search(r"^POSTGRES_PASSWORD=$", ENV_EXAMPLE, re.MULTILINE)
    assert not re.search(r"postgres(ql)?://[^@\s]*:[^@\s]*@", str(COMPOSE))


def test_the_settings_with_the_password_get_into_no_commit_and_no_image() -> None:
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").split("\n")
    assert "*" in IGNORED
    assert "!.env" not in IGNORED


def test_several_endpoints_sources_and_names_come_from_the_environment() -> None:
    environment = _environment("node") | {
        "CAPDEX_RPC_URLS": "http://a:1 http://b:2",
        "CAPDEX_IPFS_SOURCES": "http://kubo:5001 gateway:http://c:3",
        "CAPDEX_ALLOWED_HOSTS": "node rain.dev",
    }
    given = _parse(_words(SERVICES["node"]["command"]), environment).params
    assert given["rpc_url"] == ("http://a:1", "http://b:2")
    assert given["ipfs"] == ("http://kubo:5001", "gateway:http://c:3")
    assert given["allowed_host"] == ("node", "rain.dev")
    plain = _parse(_words(SERVICES["node"]["command"]), _environment("node")).params
    assert (plain["rpc_url"], plain["ipfs"]) == ((), ())  # the single ones of the network


def test_every_variable_that_a_page_names_is_one_that_something_reads() -> None:
    from capdex_cli.config.load import unused_variables
    from capdex_cli.views.help_topics import environment

    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "compose").iterdir()]
    pages += [ROOT / name for name in (".env.example", "docker-compose.yml", "Dockerfile")]
    named = {
        name
        for page in pages
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"\bCAPDEX_[A-Z][A-Z_]*[A-Z]\b", page.read_text("utf-8"))
    }
    assert len(named) > 20
    assert unused_variables(dict.fromkeys(named, "1")) == []
    explained = environment()
    assert [name for name in sorted(named) if name not in explained] == []


def test_every_variable_asked_for_is_explained_in_the_example() -> None:
    assert [
        name for name in sorted(INTERPOLATED) if not re.search(rf"^#?{name}=", ENV_EXAMPLE, re.M)
    ] == []


def test_no_variable_that_capdex_reads_in_a_shell_changes_what_the_containers_get() -> None:
    """A variable of the shell wins over .env where the compose file names it, so it names none."""
    from capdex_cli.config.load import CARRIED, OTHER_VARIABLES
    from capdex_cli.config.sources import ENVIRONMENT
    from capdex_cli.views.help_topics import environment

    for_compose = re.findall(r"^  (CAPDEX_\w+) +docker-compose\.yml: ", environment(), re.MULTILINE)
    read = {*CARRIED, *ENVIRONMENT, *(f"CAPDEX_{name}" for name in OTHER_VARIABLES)}
    assert INTERPOLATED & (read - set(for_compose)) == set()
    # They come from the file instead, in which a value stands as it is.
    for name in ("node", "standby", *READERS):
        assert SERVICES[name]["env_file"] == ".env"


def test_no_page_sets_a_variable_in_a_shell_that_the_compose_file_reads() -> None:
    """Whoever follows a page and then starts the containers again finds them as they were."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    commands = [
        line
        for page in pages
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text("utf-8"), re.M | re.DOTALL)
        for line in re.findall(r"^(?:\$ )?(\S.*)$", re.sub(r"\\\n\s*", "", block), re.MULTILINE)
    ]
    exported = {
        name
        for line in commands
        if line.startswith("export ")
        for name in re.findall(r"(\w+)=", line)
    }
    assert {"PATH", "CAPDEX_DEPLOYMENT", "CAPDEX_RPC_URL"} <= exported
    assert exported & INTERPOLATED == set()


# the image ------------------------------------------------------------------------------------


def test_the_image_runs_as_a_fixed_user_on_a_volume() -> None:
    assert _instructions("USER") == ["10001:10001"] == [SERVICES["node"]["user"]]
    assert _instructions("VOLUME") == ["/data"]
    assert SERVICES["node"]["read_only"] is True
    assert SERVICES["node"]["volumes"] == ["node:/data", "deployments:/deployments:ro"]


def test_the_image_installs_what_is_locked_with_hashes() -> None:
    lines = [x for x in re.sub(r"\\\n", "", DOCKERFILE).split("\n") if re.search(r"pip .*-r", x)]
    assert lines
    assert all("--require-hashes" in line for line in lines)
    assert "-r requirements/node.lock -r requirements/semantic.lock" in lines[-1]


def test_everything_copied_into_the_image_is_let_through() -> None:
    sources = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    for path in " ".join(sources).split():
        assert (ROOT / path).exists(), path
        assert f"!{path.split('/')[0]}" in IGNORED, path
    assert IGNORED[1] == "*"


def test_the_licences_of_all_that_is_installed_are_in_the_image() -> None:
    written = "/opt/capdex/bin/python licences.py /opt/capdex/lib/python3.11/site-packages"
    steps = re.sub(r"\\\n", "", DOCKERFILE).split("\n")
    [step] = (x for x in steps if f"{written} > /licences" in x)
    assert step.index("install --no-index --no-deps /own") < step.index(written)
    assert "COPY --from=build /licences /usr/share/doc/capdex/licences\n" in DOCKERFILE


def test_every_package_of_the_distribution_is_in_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert len(packages) > 5
    for folder in {package.split("/")[0] for package in packages}:
        assert f"COPY {folder} {folder}\n" in DOCKERFILE


# command lines --------------------------------------------------------------------------------


def _parse(arguments: list[str], environment: dict[str, str]) -> click.Context:
    """The context of the command that these arguments name; raises as `capdex` itself would."""
    with pytest.MonkeyPatch.context() as patch:
        for key in [key for key in os.environ if key.startswith("CAPDEX_")]:
            patch.delenv(key)
        for key, value in environment.items():
            patch.setenv(key, value)
        outer = program.make_context("capdex", list(arguments))
        with outer:
            name, *rest = arguments
            command = program.get_command(outer, name)
            assert command is not None
            return command.make_context(name, rest, parent=outer)


def test_the_command_of_the_image_is_one_of_ours() -> None:
    assert json.loads(_instructions("ENTRYPOINT")[0]) == ["capdex"]
    context = _parse(json.loads(_instructions("CMD")[0]), _environment())
    assert context.command.name == "node"
    assert context.params["db"] == "sqlite:////data/index.db"
    assert context.params["host"] == "127.0.0.1"
    assert context.params["log_format"] == "json"


def test_the_command_of_the_compose_file_is_one_of_ours() -> None:
    context = _parse(_words(SERVICES["node"]["command"]), _environment("node"))
    assert context.command.name == "node"
    assert context.params["db"] == "postgresql://capdex@postgres/capdex"
    assert context.params["host"] == "0.0.0.0"  # noqa: S104 - beside the hosts it may be called by
    assert {"localhost", "127.0.0.1", "node", "standby"} == set(context.params["allowed_host"])
    assert context.params["standby"] is True


@pytest.mark.parametrize("name", READERS)
def test_readers_read_the_replica(name: str) -> None:
    context = _parse(_words(SERVICES[name]["command"]), _environment(name))
    assert context.command.name == "node"
    assert context.params["role"] == "reader"
    assert context.params["db"] == "postgresql://capdex@replica/capdex"
    assert context.params["standby"] is False
    assert context.params["workers"] == 1
    assert context.params["host"] == "0.0.0.0"  # noqa: S104


def test_the_node_finds_its_network_in_the_environment_of_the_compose_file(tmp_path: Path) -> None:
    from capdex_cli.config.load import load

    own = {"CAPDEX_HOME": str(tmp_path), "CAPDEX_DEPLOYMENT": ""}
    network = load(environ=_environment("node") | own, cwd=tmp_path).need_network("rpc_url", "ipfs")
    assert (network.rpc_url, network.chain_id) == ("http://anvil:8545", 31_337)
    assert network.ipfs == "http://kubo:5001"


@pytest.mark.parametrize("name", OURS)
def test_only_variables_that_something_reads_are_set(name: str) -> None:
    from capdex_cli.config.load import unused_variables

    assert unused_variables(_environment(name)) == []


def test_health_is_asked_where_the_node_listens() -> None:
    check = SERVICES["node"]["healthcheck"]["test"]
    port = _parse(_words(SERVICES["node"]["command"]), _environment("node")).params["port"]
    compile(check[-1], "healthcheck", "exec")
    assert f"http://127.0.0.1:{port}/health" in check[-1]
    asked = json.loads(_instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    compile(asked[-1], "healthcheck", "exec")
    assert "'/health'" in asked[-1]


@pytest.mark.parametrize("where", ["compose", "image"])
def test_health_is_asked_past_the_proxy_of_the_environment(where: str) -> None:
    class Node(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 502)  # a proxy gets the whole URL
            self.end_headers()

    asked: str = SERVICES["node"]["healthcheck"]["test"][-1]
    if where == "image":
        asked = json.loads(_instructions("HEALTHCHECK")[0].partition("CMD ")[2])[-1]
    with HTTPServer(("127.0.0.1", 0), Node) as node:
        Thread(target=node.handle_request, daemon=True).start()
        port = str(node.server_port)
        environment = {"CAPDEX_PORT": port, "http_proxy": f"http://127.0.0.1:{port}"}
        code = asked.replace("8765", port)
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")
