"""The format as JSON Schema."""

from __future__ import annotations

from typing import Any

from epd_opt.instance.whole import Instance

SCHEMA = "epd-opt/instance/v1"


def instance_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of instance files, from the same source as their validation."""
    schema = Instance.model_json_schema(by_alias=True, mode="validation")
    schema["required"] = sorted({*schema["required"], "schema"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
