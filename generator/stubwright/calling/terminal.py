"""Shows the server's progress, log messages and questions on the terminal during a call.

Writes to standard error, because standard output is for the result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TextIO

from stubwright.calling import arguments
from stubwright_runtime.client.features.elicitation import build_result
from stubwright_runtime.client.features.questions import Answer, Question
from stubwright_runtime.mcp.elicitation_answers import Accepted, Cancelled, Declined
from stubwright_runtime.schema.validation import Validator
from stubwright_runtime.values.terminal import replace_controls, to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright_runtime.client.features.questions import OnQuestion

_WIDTH: Final = 24
_CLEARED: Final = "\r\x1b[K"
_SHOWN: Final = 60
_YES: Final = ("y", "yes")
_NO: Final = ("n", "no")


class Progress:
    """Shows a call's progress on one line, which is cleared at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = False

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        """Redraw the progress line; `total` is None if unknown."""
        if total:
            part = min(max(done / total, 0), 1)
            filled = round(part * _WIDTH)
            text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {part:4.0%}"
        else:
            text = f"{done:g}"
        words = to_one_line(message or "")[:_SHOWN]
        self._stream.write(_CLEARED)
        self._stream.write(f"{text} {words}".rstrip())
        self._stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._is_shown:
            self._stream.write(_CLEARED)
            self._stream.flush()
            self._is_shown = False


class Log:
    """Writes a server's log messages, one per line."""

    def __init__(self, stream: TextIO, progress: Progress) -> None:
        """Create a log that clears the progress line before it writes to `stream`."""
        self._stream = stream
        self._progress = progress

    def __call__(self, level: str, logger: str | None, data: Any) -> None:
        """Write a message: strings unchanged, other data as JSON."""
        self._progress.clear()
        message = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        self._stream.write(to_one_line(f"{level}{f' {logger}' if logger else ''}: {message}") + "\n")
        self._stream.flush()


class TerminalPrompter:
    """Asks a server's questions on the terminal."""

    def __init__(self, stream: TextIO, progress: Progress, read: Callable[[], str]) -> None:
        """Create a prompter that clears the progress line before each write.

        Args:
            read: Returns a line, or an empty string at the end of input.
        """
        self._stream = stream
        self._progress = progress
        self._read = read

    def __call__(self, question: Question) -> Answer:
        """Ask until the answer is valid, or the user declines (`n` to a yes-or-no question) or cancels (Ctrl-D)."""
        self._progress.clear()
        self._say(f"\nthe server asks: {question}")
        try:
            if question.url is not None:
                self._say("open this URL in a browser, then return here")
                return Accepted() if self._agrees("did you?") else Declined()
            properties = (question.schema or {}).get("properties") or {}
            if not properties:
                return Accepted() if self._agrees("agree?") else Declined()
            return self._fill(question.schema or {})
        except EOFError:
            self._say("")
            return Cancelled()

    def _fill(self, form: Mapping[str, Any]) -> dict[str, Any]:
        required = form.get("required") or ()
        values: dict[str, Any] = {}
        for name, schema in form["properties"].items():
            while True:
                text = self._line(_describe(name, schema, is_required=name in required))
                if not text and (name not in required or "default" in schema):
                    break
                try:
                    values[name] = _value(name, text, form)
                    break
                except arguments.ArgumentError as error:
                    self._say(f"  {error}")
        return values

    def _agrees(self, question: str) -> bool:
        while True:
            text = self._line(f"{question} [y/n] ").casefold()
            if text in (*_YES, *_NO):
                return text in _YES

    def _say(self, text: str) -> None:
        self._stream.write(f"{replace_controls(text)}\n")
        self._stream.flush()

    def _line(self, prompt: str) -> str:
        self._stream.write(replace_controls(prompt))
        self._stream.flush()
        line = self._read()
        if not line:
            raise EOFError
        return line.strip()


class Answers:
    """Answers, given on the command line, to a server's questions.

    Attributes:
        unused: The names of the answers that matched no question so far, in order.
    """

    def __init__(self, given: Sequence[str], stream: TextIO, otherwise: OnQuestion | None) -> None:
        """Parse the answers.

        Args:
            given: `NAME=VALUE` for a form field; `yes` and `no` answer a form with one boolean or no field.
            stream: Receives the questions that remain unanswered, with the reason.
            otherwise: Answers a question if its answer is missing or invalid; None to cancel the question.

        Raises:
            ArgumentError: An answer is not NAME=VALUE, `yes` or `no`.
        """
        for word in given:
            if "=" not in word and word not in ("yes", "no"):
                raise arguments.ArgumentError(
                    "--answer requires NAME=VALUE, or yes or no for a question without fields"
                )
        self._words = [word for word in given if "=" not in word]
        self._fields = dict(word.split("=", 1) for word in given if "=" in word)
        self._stream = stream
        self._otherwise = otherwise
        self.unused = dict.fromkeys([*self._words, *self._fields])

    def __call__(self, question: Question) -> Any:
        """Answer a question from the command line, or pass it to `otherwise`."""
        properties: Mapping[str, Any] = (question.schema or {}).get("properties") or {}
        match [*properties.items()]:
            case [(name, {"type": "boolean"})] if self._words and name not in self._fields:
                self.unused.pop(self._words[-1], None)
                return {name: self._words[-1] == "yes"}
        try:
            return self._fill(question.schema or {}) if properties else self._agree()
        except arguments.ArgumentError as error:
            if self._otherwise is not None:
                return self._otherwise(question)
            self._stream.write(replace_controls(f"the server asks: {question}\n{error}\n"))
            return Cancelled()

    def _fill(self, form: Mapping[str, Any]) -> dict[str, Any]:
        properties = form["properties"]
        required = form.get("required") or ()
        missing = [name for name in required if name not in self._fields and "default" not in properties.get(name, {})]
        if missing:
            wanted = " ".join(f"--answer {name}=VALUE" for name in missing)
            raise arguments.ArgumentError(f"answer it with {wanted}")
        for name in properties:
            self.unused.pop(name, None)
        return {name: _value(name, self._fields[name], form) for name in properties if name in self._fields}

    def _agree(self) -> Answer:
        if not self._words:
            raise arguments.ArgumentError("answer it with --answer yes or --answer no")
        self.unused.pop(self._words[-1], None)
        return Accepted() if self._words[-1] == "yes" else Declined()


def check_answers(ask: OnQuestion, stream: TextIO) -> OnQuestion:
    """Wrap `ask` to report and cancel a question if its answer violates the form or cannot be checked."""

    def answer(question: Question) -> Any:
        try:
            given = ask(question)
            build_result(given, question.schema)
        except ValueError as error:
            stream.write(replace_controls(f"{error}\n"))
            return Cancelled()
        return given

    return answer


def _value(name: str, text: str, form: Mapping[str, Any]) -> Any:
    """Parse the text of a form field, and apply the checks that the client makes before it sends the form."""
    schema = form["properties"][name]
    value = _convert(name, text, schema, form)
    definitions = {key: form[key] for key in ("$schema", "$defs", "definitions") if key in form}
    checked = Validator({**definitions, "properties": {name: schema}}, formats=True)
    for violation in checked.find_errors({name: value}, "answer"):
        raise arguments.ArgumentError(violation)
    return value


def _convert(name: str, text: str, schema: Mapping[str, Any], form: Mapping[str, Any]) -> Any:
    """Parse the value of a form field (MCP 2025-11-25, client/elicitation, "Requested Schema")."""
    titled = {each["title"]: each["const"] for each in schema.get("oneOf") or () if "title" in each and "const" in each}
    titled |= dict(zip(schema.get("enumNames") or (), schema.get("enum") or (), strict=False))
    if schema.get("type") == "boolean" and text.casefold() in (*_YES, *_NO):
        return text.casefold() in _YES
    if schema.get("type") == "array" and not text.startswith("["):
        items = schema.get("items") or {}
        titled = {
            each["title"]: each["const"] for each in items.get("anyOf") or () if "title" in each and "const" in each
        }
        return [titled.get(word.strip(), word.strip()) for word in text.split(",") if word.strip()]
    if text in titled:
        return titled[text]
    return arguments.read_value(name, text, schema, form)


def _describe(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    words = [schema.get("title") or name]
    if schema.get("description"):
        words.append(f"({schema['description']})")
    choices = schema.get("enumNames") or schema.get("enum") or [each.get("title") for each in schema.get("oneOf") or ()]
    items = schema.get("items") or {}
    many = items.get("enum") or [each.get("title") for each in items.get("anyOf") or ()]
    if choices or many:
        words.append(f"[{', '.join(map(str, choices or many))}]")
    elif schema.get("type") == "boolean":
        words.append("[y/n]")
    if "default" in schema:
        words.append(f"(Enter: {json.dumps(schema['default'], ensure_ascii=False)})")
    elif not is_required:
        words.append("(Enter: omit)")
    return to_one_line(" ".join(words)) + ": "
