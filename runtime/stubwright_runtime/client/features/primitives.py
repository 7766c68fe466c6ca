"""Resources, prompts and completion for generated clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..core.arguments import to_json
from ..core.binding import Binding
from ..core.content import check_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_types import (
        BlobResourceContents,
        Completion,
        PromptMessage,
        TextResourceContents,
    )

    from ..core.options import Omit


class PrimitivesBinding(Binding):
    """The base class for generated clients with resources or prompts."""

    async def _read(self, uri: str) -> list[TextResourceContents | BlobResourceContents]:
        from mcp_types import ReadResourceRequest, ReadResourceResult

        session = self._session
        result = await session.send_rounds(ReadResourceRequest, {"uri": uri}, ReadResourceResult, self._options)
        return check_parts(result.contents, "contents", self._options.sanitize)

    async def _read_from(
        self, template: str, params: Mapping[str, str | Sequence[str] | Omit]
    ) -> list[TextResourceContents | BlobResourceContents]:
        from ...mcp.uri_templates import UriTemplate

        return await self._read(UriTemplate.parse(template).expand(to_json(params)))

    async def _prompt(self, name: str, arguments: Mapping[str, str | Omit]) -> list[PromptMessage]:
        from mcp_types import GetPromptRequest, GetPromptResult

        session = self._session
        params = {"name": name, "arguments": to_json(arguments) or None}
        result = await session.send_rounds(GetPromptRequest, params, GetPromptResult, self._options)
        return check_parts(result.messages, "messages", self._options.sanitize)

    async def _complete(
        self,
        ref: Literal["prompt", "template"],
        name: str,
        argument: str,
        value: str,
        given: Mapping[str, str] | None,
    ) -> Completion:
        """Complete an argument of the prompt `name`, or a variable of the resource template whose URI is `name`."""
        from mcp_types import (
            CompleteRequest,
            CompleteRequestParams,
            CompleteResult,
            CompletionArgument,
            CompletionContext,
            PromptReference,
            ResourceTemplateReference,
        )

        params = CompleteRequestParams(
            ref=PromptReference(name=name) if ref == "prompt" else ResourceTemplateReference(uri=name),
            argument=CompletionArgument(name=argument, value=value),
            context=None if given is None else CompletionContext(arguments=dict(given)),
        )
        return (await self._session.send(CompleteRequest(params=params), CompleteResult, self._options)).completion
