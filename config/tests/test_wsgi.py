"""What gunicorn loads."""

import subprocess
import sys

import pytest
from django.conf import settings

from config.tests.instance import Instance


def test_the_web_server_has_loaded_every_page_before_its_first_request_and_no_sdk_of_models(tmp_path):
    program = "import config.wsgi, sys; print('evaluations.views.comparison' in sys.modules, 'openai' in sys.modules)"
    environment = Instance(tmp_path).environment
    answer = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, answer.stdout) == (0, "True False\n"), answer.stderr


@pytest.mark.parametrize(("proxies", "warned"), [("0", True), ("1", False)])
def test_production_web_server_warns_at_its_start_when_no_proxy_protects_it(tmp_path, proxies, warned):
    instance = Instance(tmp_path, "postgres://127.0.0.1:1/none", further={"BEHIND_PROXY": proxies})
    started = subprocess.run(
        [sys.executable, "-c", "import config.wsgi"],
        check=True,
        cwd=settings.BASE_DIR,
        env=instance.environment,
        capture_output=True,
        text=True,
    )
    assert ("slow clients can block every thread" in started.stderr) is warned
