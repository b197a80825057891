"""A document as users hold it: its fields are attributes, and it turns back into JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

Document = TypeVar("Document", bound=BaseModel)


class Held(Generic[Document]):
    """A document in hand.

    Attributes
    ----------
    document : pydantic.BaseModel
        All of it, as in the JSON document; its fields are attributes of what holds it too.
    """

    def __init__(self, document: Document) -> None:
        self.document = document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "document":
            raise AttributeError(name)
        return getattr(self.document, name)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data."""
        plain: dict[str, Any] = self.document.model_dump(mode="json", by_alias=True)
        return plain

    def to_json(self) -> str:
        """The document as strict JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the document to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")
