"""What gunicorn loads."""

import subprocess
import sys

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
