"""Breaks rules of the specification in the runtime, one at a time, and checks that their tests fail.

`python tests/support/mutants.py` breaks each rule; with a row's number, only that row. Works on a copy of the runtime.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

import forked

ROOT: Final = Path(__file__).parents[2]
_CONTENT: Final = "server/handlers/content.py"
_CONTENT_TEST: Final = "tests/runtime/server/test_server_content.py::test_whatever_is_said_of_a_block_goes_out"
_SPELLING_TEST: Final = "tests/runtime/server/test_server_offers.py::test_a_cursor_is_spelled_as_it_was_given"
_CURSOR_TEST: Final = "tests/runtime/server/test_server.py::test_a_cursor_that_was_never_given"
_ANNOTATIONS: Final = "        annotations=_annotations(audience, priority, last_modified),\n"
_FAILED: Final = 1  # pytest's exit status for failed tests, since any other failure is not a verdict


@dataclass(frozen=True)
class Mutant:
    """An edit to the runtime: after `start`, `old` becomes `new`, and `test` must fail.

    `row` is the row's number, or `None` for a rule of the specification without a row.
    """

    row: int | None
    path: str
    start: str
    old: str
    new: str
    test: str


_ASKING: Final = "tests/runtime/server/test_input_requests.py"
_REQUESTS: Final = "tests/runtime/http/test_http_requests.py"
_MALFORMED: Final = "tests/runtime/server/test_server_malformed.py"
_HEADERS: Final = "tests/runtime/http/test_headers.py"
_ROUTING_TEST: Final = f"{_HEADERS}::test_the_endpoint_answers_odd_routing_headers_as_recorded"
_GREETING_TEST: Final = f"{_MALFORMED}::test_a_handshake_is_as_large_as_can_be"
_PAGING: Final = "server/features/paging.py"
_LONG_POSITION_TEST: Final = (
    "tests/runtime/server/test_server_pages.py::test_a_position_that_is_too_long_is_the_handlers_mistake"
)
_TASKS: Final = "tasks/methods.py"
_TASK_PAGES_TEST: Final = "tests/runtime/tasks/test_tasks_handshake.py::test_each_task_is_listed_once_page_by_page"

MUTANTS: Final = (
    Mutant(
        29,
        "server/features/confirmation.py",
        "async def _confirm(",
        'if request.revision.has("stateless"):',
        "if False:",
        f"{_ASKING}::test_the_server_asks_before_it_runs_a_tool",
    ),
    Mutant(
        29,
        "server/features/input_requests.py",
        "async def ask(",
        "self._missing.append(own)",
        "self._missing = [own]",
        f"{_ASKING}::test_all_capabilities_are_told_that_questions_at_once_need",
    ),
    Mutant(
        None,
        "server/features/input_requests.py",
        "def can(",
        "if feature is not None and not",
        "if False and not",
        f"{_ASKING}::test_no_client_is_asked_what_its_revision_does_not_have",
    ),
    Mutant(
        47,
        "server/core/request.py",
        "def reaches(",
        "key not in entries.visible",
        "key.lower() not in entries.visible",
        "tests/runtime/server/test_server_offers.py::test_names_differ_by_case",
    ),
    Mutant(
        90,
        "server/protocol/messages.py",
        "def validate(",
        'if value.get("jsonrpc") != "2.0":',
        "if False:",
        f"{_MALFORMED}::test_each_malformed_body_is_answered_and_a_good_call_after_it",
    ),
    Mutant(
        144,
        "server/features/input_requests.py",
        "def is_request_outcome(",
        "or find_mcp_error(error) is not None",
        "",
        f"{_ASKING}::test_an_error_of_the_protocol_is_the_answer_of_a_call",
    ),
    Mutant(74, _CONTENT, "def image(", _ANNOTATIONS, "", _CONTENT_TEST),
    Mutant(74, _CONTENT, "def audio(", _ANNOTATIONS, "", _CONTENT_TEST),
    Mutant(81, _CONTENT, "def embedded(", _ANNOTATIONS, "", _CONTENT_TEST),
    Mutant(76, _CONTENT, "def link(", "        description=description,\n", "", _CONTENT_TEST),
    Mutant(
        None,
        "server/calls/results.py",
        "def select_meta(",
        " if not is_reserved(key)",
        "",
        "tests/runtime/server/test_server_offers.py::test_keys_of_meta_that_are_mcps_do_not_go_out",
    ),
    Mutant(
        None,
        "server/features/context.py",
        "async def progress(self, done: float, total: float | None = None",
        "if done <= self._request.progress:",
        "if done <= self._request.progress and False:",
        "tests/runtime/server/test_input_requests.py::test_progress_that_does_not_grow_is_not_sent",
    ),
    Mutant(
        16,
        "client/features/list_pages.py",
        "async def follow_pages(",
        "if cursor is None:",
        "if not cursor:",
        "tests/runtime/client/test_client_callbacks.py::test_an_empty_cursor_leads_to_the_next_page",
    ),
    Mutant(17, "server/core/lists.py", "def make_page(", "if cursor is None", "if not cursor", _CURSOR_TEST),
    Mutant(17, "server/app/core.py", "def _find_page(", "if cursor is None and", "if not cursor and", _CURSOR_TEST),
    Mutant(
        100,
        "policy/windows.py",
        "async def hit(",
        "hits.popleft()",
        "break",
        "tests/runtime/policy/test_policy_limits.py::test_a_hit_leaves_its_window_while_later_ones_stay",
    ),
    Mutant(
        None,
        "policy/limits.py",
        "def _limit_size(",
        "if size <= most:",
        "if size < most:",
        "tests/runtime/policy/test_policy_limits.py::test_sizes_are_those_of_the_json_in_bytes",
    ),
    Mutant(
        None,
        "server/protocol/messages.py",
        "def encode_error(",
        'revision.has("unnamed_errors")',
        "True",
        f"{_MALFORMED}::test_each_malformed_line_is_answered_and_a_good_call_after_it",
    ),
    Mutant(
        None,
        "server/protocol/messages.py",
        "def read(",
        "line = line.removeprefix(BOM_UTF8)",
        "pass",
        f"{_MALFORMED}::test_a_byte_order_mark_before_a_message_is_ignored",
    ),
    Mutant(
        169,
        "server/transports/http/headers.py",
        "def find_header_error(",
        "meta.get(PROTOCOL_VERSION_META_KEY) == head.revision",
        "True",
        f"{_REQUESTS}::test_a_header_that_names_another_revision_is_a_mismatch",
    ),
    Mutant(
        170,
        "server/protocol/requests.py",
        "def find_handshake_error(",
        "if is_initialized else",
        "if False else",
        f"{_REQUESTS}::test_a_session_shakes_hands_once",
    ),
    Mutant(
        171,
        "server/transports/http/posts/post.py",
        "def abandon(",
        "and self.stream.is_logged",
        "and False",
        "tests/runtime/direct/test_long_calls.py::test_a_client_that_leaves",
    ),
    Mutant(
        177,
        "server/transports/lifecycle.py",
        "def from_request(",
        " if logs else None",
        "",
        "tests/runtime/direct/test_direct_path.py::test_a_server_that_does_not_declare_logging_sends_no_message_on_stdio",
    ),
    Mutant(
        None,
        "server/protocol/messages.py",
        "def read(",
        "0 < len(value) <= _BATCH",
        "0 < len(value) < _BATCH",
        "tests/runtime/server/test_server_process.py::test_a_batch_has_at_most_a_thousand_messages",
    ),
    Mutant(
        None,
        "server/protocol/messages.py",
        "def _is_id(",
        "type(value) is str or type(value) is int",
        "isinstance(value, str | int)",
        f"{_MALFORMED}::test_each_malformed_line_is_answered_and_a_good_call_after_it",
    ),
    Mutant(
        None,
        "server/protocol/messages.py",
        "def _malformed(",
        'if code == INVALID_PARAMS and "id" not in value:',
        "if False:",
        f"{_MALFORMED}::test_answers_and_notifications_that_are_malformed_are_never_answered",
    ),
    Mutant(
        None,
        "server/protocol/requests.py",
        "def find_size_error(",
        "len(text) <= _SHORT_HANDSHAKE",
        "len(text) < _SHORT_HANDSHAKE",
        _GREETING_TEST,
    ),
    Mutant(
        None,
        "server/protocol/requests.py",
        "def find_size_error(",
        "parts <= _MAX_HANDSHAKE_PARTS",
        "parts < _MAX_HANDSHAKE_PARTS",
        _GREETING_TEST,
    ),
    Mutant(
        None,
        "server/protocol/requests.py",
        "def _find_envelope_error(",
        "if key not in meta]",
        "if key not in meta and key == keys[0]]",
        "tests/runtime/direct/test_messages.py::test_without_a_handshake",
    ),
    Mutant(
        None,
        "server/transports/http/headers.py",
        "def find_header_error(",
        'if head.method != message["method"]:',
        "if False:",
        _ROUTING_TEST,
    ),
    Mutant(
        None,
        "server/transports/http/headers.py",
        "def find_header_error(",
        "not (is_same and head.duplicate is None)",
        "not is_same",
        _ROUTING_TEST,
    ),
    Mutant(
        None,
        "server/transports/http/headers.py",
        "def _is_large(",
        "> LARGEST",
        ">= LARGEST",
        f"{_HEADERS}::test_a_body_as_large_as_can_be_is_taken",
    ),
    Mutant(
        None,
        "mcp/parameter_headers.py",
        "def _find_problem(",
        "> MAX_SAFE_INTEGER",
        ">= MAX_SAFE_INTEGER",
        "tests/runtime/server/test_server.py::test_a_mirrored_integer_beyond_the_safe_range_is_refused",
    ),
    Mutant(
        None,
        "mcp/parameter_headers.py",
        "def decode_value(",
        " if base64.b64encode(data).decode() == match[1] else None",
        "",
        f"{_HEADERS}::test_a_value_is_decoded_as_by_the_sdk",
    ),
    Mutant(
        None,
        "mcp/parameter_headers.py",
        "def list_mirrored(",
        "entry.name.lower() in mirrored",
        "entry.name in mirrored",
        f"{_HEADERS}::test_a_tool_whose_headers_differ_by_case_alone_has_none",
    ),
    Mutant(None, _PAGING, "def seal(", "> _LONGEST", ">= _LONGEST", _LONG_POSITION_TEST),
    Mutant(
        None,
        _PAGING,
        "def seal(",
        "if position == self.request.position:",
        "if False:",
        "tests/runtime/server/test_server_pages.py::test_pages_that_do_not_go_on_are_the_handlers_mistake",
    ),
    Mutant(
        None,
        _PAGING,
        "async def _open(",
        '{"name": tool.name, "arguments": arguments}',
        '{"name": tool.name, "arguments": {}}',
        "tests/runtime/server/test_server_pages.py::test_a_cursor_holds_for_its_own_call_alone",
    ),
    Mutant(
        16,
        "server/core/lists.py",
        "def make_page(",
        "if end < len(keys)",
        "if end <= len(keys)",
        "tests/runtime/server/test_server_offers.py::test_all_lists_come_in_pages",
    ),
    Mutant(17, "server/core/lists.py", "def _position(", "< length", "<= length", _SPELLING_TEST),
    Mutant(
        17,
        "server/core/lists.py",
        "def _position(",
        "_cursor(digest, int(position)) != cursor",
        "False",
        _SPELLING_TEST,
    ),
    Mutant(None, _TASKS, "async def _list(", "> after", ">= after", _TASK_PAGES_TEST),
    Mutant(
        None, _TASKS, "async def _list(", "if len(left) > _PAGE_SIZE", "if len(left) >= _PAGE_SIZE", _TASK_PAGES_TEST
    ),
    Mutant(
        None,
        _TASKS,
        "async def _listen(",
        "> _MAX_SUBSCRIBED",
        ">= _MAX_SUBSCRIBED",
        "tests/runtime/tasks/test_tasks_stateless.py::test_a_stream_tells_of_at_most_a_thousand_tasks",
    ),
    Mutant(
        None,
        _TASKS,
        "def _may_see(",
        "if task.owner != find_owner(",
        "if False and task.owner != find_owner(",
        "tests/runtime/tasks/test_tasks_handshake.py::test_a_task_is_its_principals_alone",
    ),
    Mutant(
        None,
        _TASKS,
        "async def _result(",
        'if task.status == "cancelled":',
        "if False:",
        "tests/runtime/tasks/test_tasks_handshake.py::test_a_cancelled_task_stays_cancelled",
    ),
    Mutant(
        None,
        "tasks/store.py",
        "async def change(",
        "task.is_terminal or",
        "",
        "tests/runtime/tasks/test_tasks_runs.py::test_what_is_over_never_changes_whoever_tries",
    ),
    Mutant(
        None,
        "tasks/store.py",
        "async def change(",
        "max(self.now(), task.updated)",
        "self.now()",
        "tests/runtime/tasks/test_tasks_runs.py::test_a_change_by_a_slow_clock_does_not_go_back",
    ),
    Mutant(
        None,
        "tasks/poll_rates.py",
        "def count(",
        "left >= 1",
        "left > 1",
        "tests/runtime/tasks/test_poll_rates.py::test_a_burst_and_then_so_many_a_second",
    ),
)


def mutate(text: str, mutant: Mutant) -> str:
    """Return the edited text. Raises ValueError if the text to edit is missing, because the list is outdated."""
    before, start, after = text.partition(mutant.start)
    body, following, rest = after.partition("\ndef ")
    if not start or mutant.old not in body:
        raise ValueError(f"{mutant.path}: {mutant.old!r} is not below {mutant.start!r}; change the list in mutants.py")
    return before + start + body.replace(mutant.old, mutant.new, 1) + following + rest


def survives(mutant: Mutant) -> bool:
    """Return whether its test still passes. Raises RuntimeError if the test cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "stubwright_runtime")
        # Include bytecode, but not other tests' temporary files.
        shutil.copytree(ROOT / "runtime/stubwright_runtime", package, ignore=shutil.ignore_patterns("*.pyc.*"))
        path = package / mutant.path
        Path(cache_from_source(path)).unlink(missing_ok=True)
        path.write_text(mutate(path.read_text(), mutant))
        command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test]
        done = forked.python_with(command, ROOT, Path(folder))
    if done.returncode not in {0, _FAILED}:
        raise RuntimeError(f"{mutant.test} was not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def main(rows: list[str]) -> int:
    """Break the named rows, or all rows. Print a line for each, and return 1 if a mutant survives."""
    alive = 0
    for mutant in MUTANTS:
        if rows and str(mutant.row) not in rows:
            continue
        survived = survives(mutant)
        alive += survived
        print(
            f"{'SURVIVED' if survived else 'killed  '} row {mutant.row or '-'}: {mutant.path}, {mutant.start}",
            flush=True,
        )
    return 1 if alive else 0


if __name__ == "__main__":
    forked.begin()
    try:
        raise SystemExit(main(sys.argv[1:]))
    finally:
        forked.close()
