"""Storage formats."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from epd_models.precision import BYTES_PER_VALUE
from epd_opt.fields import Part, complaint, shown


def _format(value: object) -> object:
    if isinstance(value, str) and value not in BYTES_PER_VALUE:
        hint = "use bf16, which takes the same room and time" if value in {"fp16", "float16", "bfloat16"} else ""
        raise complaint(f"found {shown(value)}, expected one of {', '.join(sorted(BYTES_PER_VALUE))}", hint)
    return value


Format = Annotated[str, Field(json_schema_extra={"enum": sorted(BYTES_PER_VALUE)})]
StorageFormat = Annotated[Format, BeforeValidator(_format)]


class Precision(Part):
    """Storage formats; what is absent follows the checkpoint or, on a device entry, the instance."""

    weights: StorageFormat | None = Field(default=None, description="Format of the language model's weights.")
    kv_cache: StorageFormat | None = Field(default=None, description="Format of the KV cache.")
    encoder: StorageFormat | None = Field(default=None, description="Format of the vision encoder's weights.")
