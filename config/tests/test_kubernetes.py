"""The manifests fit the schemas of Kubernetes and start what docker-compose.yml starts."""

import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

FOLDER = settings.BASE_DIR / "config"
ITEMS = yaml.safe_load((FOLDER / "kubernetes" / "webverdict.yaml").read_text())["items"]
COMPOSE = yaml.safe_load((settings.BASE_DIR / "docker-compose.yml").read_text())["services"]
PODS = {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in ITEMS if "template" in item["spec"]}
# PostgreSQL, Redis and the store are the cluster's own or managed ones. So are their backups.
NOT_HERE = {"postgres", "redis", "store", "backup"}
VERSION = "1.32"


@pytest.mark.parametrize("item", ITEMS, ids=[f"{item['kind']} {item['metadata']['name']}" for item in ITEMS])
def test_every_manifest_fits_its_schema(item):
    kubernetes_validate.validate(item, VERSION, strict=True)


def test_a_manifest_with_a_misspelt_field_is_refused():
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def words(command):
    return [word.replace("$$", "$") for word in command]


def test_the_same_services_run_with_the_same_commands_and_limits():
    assert set(PODS) == set(COMPOSE) - NOT_HERE
    for name, pod in PODS.items():
        (container,) = pod["containers"]
        service = COMPOSE[name]
        if name != "migrate":  # a command of Compose is interpreted by a shell only there
            assert container.get("command") == (words(service["command"]) if "command" in service else None), name
        limits = container["resources"]["limits"]
        assert limits["memory"].replace("Gi", "g").replace("Mi", "m") == service["mem_limit"], name
        assert float(limits["cpu"]) == service["cpus"], name


def test_every_container_is_closed():
    for name, pod in PODS.items():
        assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False), name
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            added = COMPOSE[name].get("cap_add")
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]} | ({"add": added} if added else {}),
            }, name


def selects(selector, labels):
    wanted = [
        *({"key": key, "values": [value]} for key, value in selector.get("matchLabels", {}).items()),
        *selector.get("matchExpressions", []),
    ]
    return all(labels.get(each["key"]) in each["values"] for each in wanted)


def find_ports_out(name):
    """The ports that the pods of a workload reach elsewhere, except name servers; None stands for all."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "webverdict"}
    rules = [
        rule
        for item in ITEMS
        if item["kind"] == "NetworkPolicy" and selects(item["spec"]["podSelector"], labels)
        for rule in item["spec"].get("egress", [])
    ]
    assert rules, f"no policy limits {name}"
    ports = {port["port"] for rule in rules for port in rule.get("ports", [{"port": None}])}
    for rule in rules:
        blocks = [to["ipBlock"] for to in rule.get("to", []) if "ipBlock" in to]
        assert all(block["except"] for block in blocks), name
        assert "to" in rule or {port["port"] for port in rule["ports"]} == {53}, name
    return ports - {53}


def test_each_workload_reaches_only_what_it_needs():
    services = {5432, 6379, 443}
    further = {"mail-worker": {25, 465, 587, 8443}, "judge-worker": {None}}
    expected = {name: services | further.get(name, set()) for name in PODS} | {"proxy": {"http"}}
    assert {name: find_ports_out(name) for name in PODS} == expected


def names_in(file):
    return set(re.findall(r"^([A-Z0-9_]+)=", (FOLDER / "kubernetes" / file).read_text(), re.MULTILINE))


def test_the_settings_exist_and_only_one_worker_has_the_keys_of_models_and_one_the_password_of_the_mail_server():
    known = (settings.BASE_DIR / "docs" / "reference" / "settings.md").read_text()
    given = names_in("settings.env") | names_in("secrets.env.example") | names_in("mail.env.example")
    assert {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "BEHIND_PROXY"} <= given
    assert [name for name in sorted(given) if f"`{name}`" not in known] == []
    keyed = [name for name, pod in PODS.items() if "webverdict-judge-keys" in str(pod)]
    assert keyed == ["judge-worker"]
    assert [name for name, pod in PODS.items() if "webverdict-mail'" in str(pod)] == ["mail-worker"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_kustomize_renders_every_manifest(tmp_path):
    shutil.copytree(FOLDER / "kubernetes", tmp_path / "kubernetes")
    for name in ("Caddyfile", "kustomization.yaml"):
        shutil.copy(FOLDER / name, tmp_path)
    for example in (tmp_path / "kubernetes").glob("*.example"):
        example.rename(example.with_suffix(""))
    done = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    made = list(yaml.safe_load_all(done.stdout))
    for item in made:
        kubernetes_validate.validate(item, VERSION, strict=True)
    assert len(made) == len(ITEMS) + 5  # two maps of settings and three secrets
    # Changed settings restart the pods, since the names of maps have a digest.
    assert "webverdict-settings-" in str(made)
