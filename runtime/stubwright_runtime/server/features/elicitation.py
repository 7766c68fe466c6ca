"""Elicitation by form or URL (MCP 2025-11-25, client/elicitation)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ...mcp.elicitation_answers import Accepted, Cancelled, Declined, ElicitResult
from ...package import EXACT_FORMATS
from ...schema.validation import Validator
from ...values.sanitizing import clean
from .input_requests import ELICIT, InvalidAnswer, make_url_params, read_elicit_result, reject_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...mcp.revisions import Revision
    from ...models.base import Model
    from .context import Context
    from .input_requests import InputRequests

_Answer = TypeVar("_Answer", bound="Model")


class Ask:
    """The base of generated classes that have one method for each of a handler's questions."""

    def __init__(self, input_requests: InputRequests, questions: Mapping[str, Any]) -> None:
        self._input_requests = input_requests
        self._questions = questions

    @classmethod
    def from_context(cls, context: Context, /) -> Self:
        """Return the questions of the context's handler."""
        return cls(context.rounds, context._questions)

    async def _form(self, name: str, model: type[_Answer], message: str | None) -> _Answer | Declined | Cancelled:
        """Ask a question with a form (MCP 2025-11-25, client/elicitation, form mode)."""
        question = self._questions[name]
        schema = question["schema"]

        def read(answer: Mapping[str, Any]) -> _Answer | Declined | Cancelled:
            from pydantic import ValidationError

            result = parse_answer(question, answer)
            if result.action != "accept":
                return _refusal(result.action)
            try:
                return model.model_validate(result.content)
            except ValidationError as error:
                raise reject_answer(error) from error

        request = make_form(message or question["message"], self._shape(schema))
        return await self._input_requests.ask(name, request, read, FORM)

    def _shape(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a question's schema in the form dialect of the client's revision. Raises InvalidAnswer."""
        asked = _form_for(schema, self._input_requests.revision)
        if asked is None and self._input_requests.can(FORM):
            raise InvalidAnswer(
                "This question allows several answers, which MCP "
                f"{self._input_requests.revision.date} does not support."
            )
        return asked or schema

    async def ask_ahead(self, name: str) -> None:
        """Ask a question before the task starts, with the manifest's message (`before: task`).

        Raises:
            InvalidAnswer: Each of the client's answers was invalid.
            MissingCapability: The client does not support elicitation.
        """
        question = self._questions[name]

        def read(answer: Mapping[str, Any]) -> Mapping[str, Any]:
            parse_answer(question, answer)
            return answer

        request = make_form(question["message"], self._shape(question["schema"]))
        self._input_requests.add_answer(name, await self._input_requests.ask(name, request, read, FORM))

    async def _url(
        self, name: str, url: str, message: str | None, elicitation: str | None
    ) -> Accepted | Declined | Cancelled:
        """Ask the user to open a URL (MCP 2025-11-25, client/elicitation, URL mode)."""
        can_open = self._input_requests.can("elicitation.url")
        known = await self._input_requests.name_url_question(elicitation) if can_open else None
        params = make_url_params(url, message or self._questions[name]["message"], known)

        def read(answer: Mapping[str, Any]) -> Accepted | Declined | Cancelled:
            action = read_elicit_result(answer).action
            return Accepted(known) if action == "accept" else _refusal(action)

        request = {"method": ELICIT, "params": params}
        return await self._input_requests.ask(name, request, read, "elicitation.url")


FORM: Final = "elicitation.form"


def make_form(message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form elicitation request that contains `schema` unchanged."""
    return {"method": ELICIT, "params": {"mode": "form", "message": clean(message), "requestedSchema": schema}}


def parse_answer(question: Mapping[str, Any], answer: Mapping[str, Any]) -> ElicitResult:
    """Parse and validate the client's answer to a form. Raises InvalidAnswer."""
    result = read_elicit_result(answer)
    if result.action == "accept":
        validator = Validator(question["schema"], formats=True, exact=question.get(EXACT_FORMATS, False))
        if violations := validator.find_errors(result.content, "answer"):
            raise InvalidAnswer("; ".join(violations))
    return result


def _refusal(action: str) -> Declined | Cancelled:
    return Declined() if action == "decline" else Cancelled()


def _form_for(schema: Mapping[str, Any], revision: Revision) -> Mapping[str, Any] | None:
    """Return a form's schema for a revision, or `None` if the revision does not support a required field.

    MCP 2025-06-18 and earlier have no multiple choice. These revisions express choices with titles as an `enum` with
    `enumNames`. Optional fields that are not supported are omitted (MCP 2025-06-18, client/elicitation, "Requested
    Schema").
    """
    if revision.has("choices"):
        return schema
    fields: Mapping[str, Any] = schema.get("properties", {})
    asked = {name: _field_for(field) for name, field in fields.items() if field.get("type") != "array"}
    if any(name in fields and name not in asked for name in schema.get("required", ())):
        return None
    return {**schema, "properties": asked}


def _field_for(field: dict[str, Any]) -> dict[str, Any]:
    if "oneOf" not in field:
        return field
    choices = field["oneOf"]
    named = {"enum": [choice["const"] for choice in choices], "enumNames": [choice["title"] for choice in choices]}
    return {**{key: value for key, value in field.items() if key != "oneOf"}, **named}
