"""Whether two instances say the same."""

from __future__ import annotations

import hashlib
import json

from epd_opt.instance.whole import Instance


def instance_sha256(instance: Instance) -> str:
    """SHA-256 (hex) of what the instance says: neither the order of keys nor that of named things counts."""
    document = instance.document()
    lists = [document["workload"]["classes"], document["devices"], document["workers"], document.get("scenarios", [])]
    for named in lists:
        named.sort(key=lambda item: item["name"])
    document["network"]["forbidden_kv_pairs"].sort()
    document["limits"]["forbid"].sort()
    document["limits"]["require"].sort()
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
