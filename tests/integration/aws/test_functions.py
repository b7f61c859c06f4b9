"""Functions run from their zips as on Lambda: state, limits, errors, roles, queues."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.processes import start_time_ticks

pytestmark = pytest.mark.integration


def test_a_function_runs_from_its_zip_and_keeps_its_state(cloud: Any) -> None:
    function = cloud.function(
        "import os\n"
        "count = 0\n"
        "def handler(event, context):\n"
        "    global count\n"
        "    count += 1\n"
        "    return {'count': count, 'file': __file__, 'setting': os.environ['SETTING'],\n"
        "            'left': context.get_remaining_time_in_millis() > 0}\n",
        variables={"SETTING": "yes"},
    )
    first, _ = cloud.invoke(function)
    second, error = cloud.invoke(function)
    assert (first["count"], second["count"], error) == (1, 2, None)
    assert first["file"].startswith(str(cloud.place.path("lambda", function)))
    assert (first["setting"], first["left"]) == ("yes", True)


def test_a_function_sees_its_zip_and_what_lambda_has_and_nothing_else(cloud: Any) -> None:
    function = cloud.function(
        "import importlib.util\n"
        "def handler(event, context):\n"
        "    names = ('handlers', 'core', 'local', 'pydantic', 'kafka', 'boto3')\n"
        "    return [name for name in names if importlib.util.find_spec(name)]\n"
    )
    assert cloud.invoke(function) == (["handlers", "boto3"], None)


def test_a_function_past_its_timeout_is_killed_and_starts_afresh(cloud: Any) -> None:
    function = cloud.function(
        "import time\n"
        "seen = []\n"
        "def handler(event, context):\n"
        "    seen.append(1)\n"
        "    time.sleep(event.get('sleep', 0))\n"
        "    return len(seen)\n",
        timeout=3,
    )
    assert cloud.invoke(function) == (1, None)
    started = time.monotonic()
    answer, error = cloud.invoke(function, {"sleep": 30})
    assert time.monotonic() - started < 30  # it was not let sleep to its end
    assert (answer["errorType"], error) == ("Sandbox.Timedout", "Unhandled")
    assert cloud.invoke(function) == (1, None)


def test_calls_beyond_the_reserved_concurrency_are_refused_at_once(cloud: Any) -> None:
    function = cloud.function(
        "import time\ndef handler(event, context):\n    time.sleep(2.0)\n    return 'answered'\n"
    )
    cloud.client("lambda").put_function_concurrency(
        FunctionName=function, ReservedConcurrentExecutions=1
    )

    once = cloud.session.client(
        "lambda",
        endpoint_url=cloud.place.url("moto"),
        config=Config(retries={"total_max_attempts": 1}),
    )

    def call(_: int) -> str:
        try:
            return str(json.loads(once.invoke(FunctionName=function)["Payload"].read()))
        except ClientError as error:
            return str(error.response["Error"]["Code"])

    with ThreadPoolExecutor(3) as callers:
        answers = list(callers.map(call, range(3)))
    assert sorted(answers) == ["TooManyRequestsException", "TooManyRequestsException", "answered"]


def test_a_function_that_cannot_be_imported_says_so_at_once(cloud: Any) -> None:
    function = cloud.function("import nothing_of_that_name\n", timeout=60)
    started = time.monotonic()
    answer, error = cloud.invoke(function)
    assert time.monotonic() - started < 60  # not only once its timeout is over
    assert (answer["errorType"], error) == ("Runtime.ImportModuleError", "Unhandled")


def test_an_exception_and_an_exit_are_errors_of_the_invocation(cloud: Any) -> None:
    function = cloud.function(
        "import os\n"
        "def handler(event, context):\n"
        "    if event.get('exit'): os._exit(3)\n"
        "    if event.get('fail'): raise ValueError('bad')\n"
        "    return 'fine'\n"
    )
    answer, error = cloud.invoke(function, {"fail": True})
    assert (answer["errorType"], answer["errorMessage"], error) == (
        "ValueError",
        "bad",
        "Unhandled",
    )
    answer, error = cloud.invoke(function, {"exit": True})
    assert (answer["errorType"], error) == ("Runtime.ExitError", "Unhandled")
    assert cloud.invoke(function) == ("fine", None)


def test_a_deleted_functions_children_end(cloud: Any) -> None:
    function = cloud.function("import os\ndef handler(event, context):\n    return os.getpid()\n")
    pid, _ = cloud.invoke(function)
    assert start_time_ticks(pid) is not None
    assert os.getpgid(pid) == pid
    cloud.client("lambda").delete_function(FunctionName=function)
    cloud.eventually(lambda: start_time_ticks(pid) is None)
