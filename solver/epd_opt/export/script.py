"""The shell script that starts replicas, whatever the engine."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from epd_opt.export.exported import Exported
from epd_opt.export.fleet import Deployed, Fleet
from epd_opt.wording import counted, printable

VISIBLE = {
    "NVIDIA": "CUDA_VISIBLE_DEVICES",
    "AMD": "HIP_VISIBLE_DEVICES",
    "Huawei": "ASCEND_RT_VISIBLE_DEVICES",
    "Rebellions": "RBLN_DEVICES",
}
"""What tells an engine its devices, by vendor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """How an engine is started.

    Attributes
    ----------
    model_option : tuple of str
        What stands before the model.
    encoder, engine : callable
        Options of an encoder process and of an engine process of a pool.
    environment : callable
        Variables of a process of a pool, as bash expands them; told whether it is an encoder.
    node_options : tuple of str
        For replicas over several hosts; for all but the first host on top.
    needs_urls : bool
        Whether an engine is told the addresses of its encoders.
    """

    name: str
    version: str
    command: tuple[str, ...]
    model_option: tuple[str, ...]
    encoder: Callable[[Fleet, Deployed], list[str]]
    engine: Callable[[Fleet, Deployed], list[str]]
    environment: Callable[[Deployed, bool], Mapping[str, str]]
    node_options: tuple[str, str]
    needs_urls: bool


def script(deployed: Fleet, launcher: Launcher, notes: Sequence[str]) -> Exported:
    """The script, with what it cannot say at its head."""
    notes = [*notes, *_unknown_devices(deployed)]
    lines = [
        "#!/usr/bin/env bash",
        *heading(deployed, f"{launcher.name} {launcher.version}", notes),
        "#",
        "# bash FILE list                             pools, replicas (spares included) and devices",
        "# bash FILE start POOL FIRST_DEVICE PORT     one replica of pool number POOL on this host: its devices count from",
        "#                                            FIRST_DEVICE, its ports from PORT; the last is the engine's",
        "# MODEL and HOST (the address of this host for its peers) may be set in the environment.",
        "set -euo pipefail",
        f'[ -n "${{MODEL:-}}" ] || MODEL={shlex.quote(printable(deployed.model))}',
        "HOST=${HOST:-127.0.0.1}",
        "",
        "list() {",
        "  cat <<'END'",
        "pool\treplicas\tspares\tdevices_per_replica\tports_per_replica\thosts_per_replica\tsku\tname",
        *(_row(pool) for pool in deployed.pools),
        "END",
        "}",
    ]
    for pool in deployed.pools:
        lines += ["", *_function(deployed, pool, launcher)]
    numbers = "|".join(str(pool.number) for pool in deployed.pools)
    lines += [
        "",
        'case "${1:-}" in',
        "  list) list ;;",
        "  start)",
        "    FIRST=${3:?first device} PORT=${4:?first port}",
        '    case "${2:?pool}" in',
        f'      {numbers}) "pool_$2" ;;',
        '      *) echo "no pool $2; bash $0 list" >&2; exit 2 ;;',
        "    esac ;;",
        '  *) echo "usage: bash $0 list | start POOL FIRST_DEVICE PORT" >&2; exit 2 ;;',
        "esac",
    ]
    return Exported(content="\n".join(lines) + "\n", warnings=tuple(notes))


def heading(deployed: Fleet, target: str, notes: Sequence[str]) -> Iterator[str]:
    """Comment lines: what it is, for which release, and what it does not say."""
    document = deployed.document
    name = printable(document.instance)
    yield f"# {name}: {counted(len(document.pools), 'pool')}, {counted(deployed.replicas, 'replica')} (spares included)"
    yield f"# Written by epd-opt {document.provenance.epd_opt} with the options of {target}."
    if notes:
        yield "# Not expressed here, or left to do by hand:"
    yield from (f"# - {printable(note)}" for note in notes)


def _unknown_devices(deployed: Fleet) -> Iterator[str]:
    for pool in deployed.pools:
        if pool.vendor not in VISIBLE:
            whose = pool.vendor or "its"
            yield f"{pool.label}: which variable picks {whose} devices is not known: all of the host's are seen"


def _ports(pool: Deployed) -> int:
    return pool.encoder_processes + (pool.role != "encode")


def _row(pool: Deployed) -> str:
    cells = (
        pool.number,
        pool.replicas,
        pool.pool.spare_replicas,
        pool.logical_devices,
        _ports(pool),
        pool.nodes,
        printable(pool.pool.sku),
        pool.label,
    )
    return "\t".join(str(cell) for cell in cells)


def _function(deployed: Fleet, pool: Deployed, launcher: Launcher) -> Iterator[str]:
    visible = VISIBLE.get(pool.vendor)
    per_node = -(-pool.logical_devices // pool.nodes)
    yield f"pool_{pool.number}() {{  # {pool.label}: {', '.join(pool.pool.stages)}"
    yield "  local port=$PORT"
    if launcher.needs_urls and pool.receives_embeddings:
        yield "  local encoders=()"
        if not pool.encoders:
            yield '  read -ra encoders <<<"${ENCODER_URLS:?addresses of the encoders, with blanks between them}"'
    if pool.nodes > 1:
        yield '  : "${NODE_RANK:?number of this host in the replica, from 0}" "${MASTER_ADDR:?address of host 0}"'
    if pool.encoders:
        yield "  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
        yield f"  for ((device = FIRST; device < FIRST + {per_node}; device++)); do"
        yield f"    for ((process = 0; process < {pool.encoders}; process++)); do"
        variables = _variables(visible, "$device", launcher.environment(pool, True))
        yield from _command(variables, launcher, launcher.encoder(deployed, pool), "      ", " &")
        if launcher.needs_urls and pool.role != "encode":
            yield '      encoders+=("http://$HOST:$port")'
        yield "      port=$((port + 1))"
        yield "    done"
        yield "  done"
    if pool.role == "encode":
        yield "  wait"
    else:
        span = f'$(seq -s, "$FIRST" "$((FIRST + {per_node - 1}))")'
        variables = _variables(visible, span, launcher.environment(pool, False))
        tail = ' --encoder-urls "${encoders[@]}"' if launcher.needs_urls and pool.receives_embeddings else ""
        if pool.nodes > 1:
            shared, others = launcher.node_options
            tail += " " + shared.format(nodes=pool.nodes)
            if others:
                yield f"  local others=(); if ((NODE_RANK > 0)); then others=({others}); fi"
                tail += ' "${others[@]}"'
        yield from _command(variables, launcher, launcher.engine(deployed, pool), "  ", tail)
    yield "}"


def _variables(visible: str | None, devices: str, others: Mapping[str, str]) -> list[str]:
    chosen = {visible: devices} if visible else {}
    return [f'{name}="{value}"' for name, value in {**chosen, **others}.items()]


def _command(variables: Sequence[str], launcher: Launcher, options: Sequence[str], indent: str, tail: str) -> Iterator[str]:
    """One command over several lines, an option on each."""
    start = [*launcher.command, *launcher.model_option, '"$MODEL"']
    parts = [*variables, " ".join(start), '--host 0.0.0.0 --port "$port"']
    for option in options:
        if option.startswith("--"):
            parts.append(option)
        else:
            parts[-1] += f" {shlex.quote(option)}"
    for i, part in enumerate(parts):
        yield indent + ("  " if i else "") + part + (tail if i == len(parts) - 1 else " \\")
