"""What the pages say of the stored rows: sentences whose figures are read from them."""

# ruff: noqa: E501  sentences are wrapped when they are written into the pages

from __future__ import annotations

from dataclasses import replace
from typing import Any

from epd_models import catalog
from npu.question import list_price, rules
from npu.stored import Row, alone, find
from npu.tables import CLAIMED_GAIN

Tables = dict[str, list[dict[str, Any]]]
REBEL, SMALL, IMAGES = "RBLN-REBEL100-CR13", "Llama-3.1-8B", "Qwen3-VL-32B"
H200, B200 = "H200-SXM", "B200-SXM"


def cost(row: Row) -> float:
    """US dollars per hour."""
    return float(row["usd_per_hour"])


def per_cent(share: float) -> str:
    """A share in whole per cent."""
    return f"{share:.0%}".replace("%", " %")


def change(new: Row, old: Row) -> str:
    """By how much a fleet costs more or less than another."""
    gain = cost(new) / cost(old) - 1.0
    return f"{per_cent(abs(gain))} {'more' if gain > 0 else 'less'}"


def more(new: Row, old: Row) -> str:
    """The same as a signed percentage."""
    gain = cost(new) / cost(old) - 1.0
    return f"{gain:+.0%}".replace("%", " %") if abs(gain) >= 0.005 else "±0 %"


def even(tables: Tables, npu: str, gpu: str, *, as_gpu: bool = False, model: str | None = None) -> float:
    """Break-even price, US dollars."""
    row = find(tables["break_evens"], npu=npu, gpu=gpu, as_gpu=as_gpu or None, model=model)
    return 0.0 if row.get("never") else float(row["break_even"])


def usd(value: float) -> str:
    """Two significant digits are what a break-even has."""
    return f"{float(f'{value:.2g}'):,.0f} USD"


def _even_text(row: Row) -> str:
    return "no price" if row.get("never") else usd(row["break_even"])


def _pair(tables: Tables, gpu: str, npu: str = "Gaudi3", model: str | None = None, **asked: Any) -> Row:
    return find(tables["fleets"], way="pair", gpu=gpu, npu=npu, model=model, **asked)


def _reverse(tables: Tables, gpu: str, npu: str = "Gaudi3", model: str | None = None, **asked: Any) -> Row:
    return find(tables["reverse"], way="reverse", gpu=gpu, npu=npu, model=model, **asked)


def _alone(tables: Tables, gpu: str, model: str | None = None) -> Row:
    return alone(tables["fleets"], gpu, model=model)


def _capital(tables: Tables, gpu: str, **asked: Any) -> float:
    served = find(tables["capital"], way="pair", gpu=gpu, **asked)["requests_per_s"]
    return float(served / find(tables["capital"], way="one vendor", gpu=gpu)["requests_per_s"])


def answer(tables: Tables) -> str:
    """The page's answer."""
    h200, b200 = _alone(tables, H200), _alone(tables, B200)
    low = {"npu_price": 15000.0, "as_gpu": True}
    return f"""**In short**, for a 70B model at prices of 2026:

- Against **H200**, decode on Gaudi 3 at its list price is a draw: {change(_pair(tables, H200), h200)} than H200 alone, prefill and decode apart.
  Gaudi 3 *reading* for H200 that write costs {change(_reverse(tables, H200), h200)}: the pairing pays the other way round.
- Against **B200** no NPU pays at a public price: Gaudi 3 costs {change(_pair(tables, B200), b200)}. A newer GPU beats a second vendor.
- An unpriced NPU must be cheap *and* efficient. REBEL100 may cost {usd(even(tables, REBEL, H200))} against H200 and
  {usd(even(tables, REBEL, B200))} against B200 if it is as efficient as its card estimates, {usd(even(tables, REBEL, H200, as_gpu=True))} and
  {usd(even(tables, REBEL, B200, as_gpu=True))} if it were as efficient as a GPU; the guessed range begins at 15,000.
- The same million dollars serves {_capital(tables, H200, npu="Gaudi3"):.2f} times as much with Gaudi 3 as with H200 alone, {_capital(tables, B200, npu="Gaudi3"):.2f} times as much as
  with B200 alone; {_capital(tables, H200, npu=REBEL, **low):.2f} and {_capital(tables, B200, npu=REBEL, **low):.2f} times with REBEL100 at the low end of its range, as efficient as a GPU.
- Small models suit NPUs better, since one device holds them: for Llama-3.1-8B the break-evens against H200 are
  {usd(even(tables, REBEL, H200, model=SMALL))} to {usd(even(tables, REBEL, H200, as_gpu=True, model=SMALL))} (REBEL100) and {usd(even(tables, "RNGD", H200, model=SMALL))} to {usd(even(tables, "RNGD", H200, as_gpu=True, model=SMALL))} (RNGD).
"""


def fleets(tables: Tables) -> str:
    """What the fleets' table says."""
    devices = {(r["sku"], r["model"], r["as_gpu"]): r for r in tables["devices"]}
    reads, writes = (
        devices["Gaudi3", "Llama-3.1-70B", False][part] / devices[H200, "Llama-3.1-70B", False][part]
        for part in ("read", "written")
    )
    atom = find(tables["fleets"], npu="RBLN-ATOM-Max-CA25")
    mixed, single = (row for row in tables["shipped"] if row["instance"] == "gpu-or-npu")
    both = any("Gaudi3" not in pool for pool in mixed["fleet"])
    left = "read everything and both write" if both else "read and write everything"
    return f"""What decides is not who has bandwidth but who is *relatively* better at which stage. Gaudi 3 costs {per_cent((list_price("Gaudi3", False) or 0.0) / (list_price(H200, False) or 1.0))} of an H200, reads
{per_cent(reads)} as fast and, cut over four devices, writes {per_cent(writes)} as fast, so it is the better reader. For the 8B model, which fits one device, the
handicap goes: REBEL100 as efficient as a GPU at 15,000 USD beside H200 costs {change(_pair(tables, H200, REBEL, SMALL, npu_price=15000.0, as_gpu=True), _alone(tables, H200, SMALL))} than H200 alone writing, {change(_reverse(tables, H200, REBEL, SMALL, npu_price=15000.0, as_gpu=True), _alone(tables, H200, SMALL))} reading; beside
B200 {change(_pair(tables, B200, REBEL, SMALL, npu_price=15000.0, as_gpu=True), _alone(tables, B200, SMALL))} and {change(_reverse(tables, B200, REBEL, SMALL, npu_price=15000.0, as_gpu=True), _alone(tables, B200, SMALL))}. Gaudi 3 doing everything costs {change(find(tables["fleets"], way="one vendor", gpu="Gaudi3", model=None), _pair(tables, H200))} than H200 with Gaudi 3 on the 70B model: where the
second vendor is cheap enough to write, ask whether it should read, too. Left to choose (`instances/gpu-or-npu.yaml`, two classes of
requests), the planner lets Gaudi 3 {left}, for {mixed["usd_per_hour"]:.2f} $/h against {single["usd_per_hour"]:.2f} with H200 alone.

With images, H200 that encode in a pool and read, with Gaudi 3 that write, cost {change(_pair(tables, H200, model=IMAGES), _alone(tables, H200, IMAGES))} than H200 alone; B200 encoding beside the language model
beat every split ({more(_pair(tables, B200, model=IMAGES), _alone(tables, B200, IMAGES))} with Gaudi 3).

Energy is no reason by itself: as estimated, H200 with REBEL100 gives {_pair(tables, H200, REBEL, npu_price=15000.0)["tokens_per_kwh"] / 1e6:.1f} million tokens per kWh against {_alone(tables, H200)["tokens_per_kwh"] / 1e6:.1f} of H200 alone and {_alone(tables, B200)["tokens_per_kwh"] / 1e6:.1f} of B200 alone;
as efficient as a GPU {_pair(tables, H200, REBEL, npu_price=15000.0, as_gpu=True)["tokens_per_kwh"] / 1e6:.1f}. ATOM-Max is no decode device for these lengths: its compiled shapes reserve the whole context for
every sequence, and {atom["devices"]["RBLN-ATOM-Max-CA25"]:,} cards would be needed for the 8B model.
"""


def break_evens(tables: Tables) -> str:
    """What the break-evens say."""
    most = find(tables["bandwidth"], npu=REBEL, gpu=H200, bandwidth_share=0.9)["break_even"]
    rival, free = (find(tables["brief"], way=way, gpu=H200) for way in ("one vendor", "pair"))
    ends = [
        find([row for row in tables["brief"] if "rival" in row], gpu=gpu, as_gpu=as_gpu)
        for gpu in (H200, B200)
        for as_gpu in (None, True)
    ]
    estimated, gpu_like = (" and ".join(dict.fromkeys(_even_text(row) for row in ends[at::2])) for at in (0, 1))
    return f"""Bandwidth alone does not carry REBEL100 far: at nine tenths of it, everything else as estimated, it may cost {usd(most)} against H200. The rest is
in overheads per layer, in the share of matrix peaks at batches of a hundred and more, and in all-reduces over PCIe, which a 70B
model cut over two to eight cards pays 160 times a token. Against B200 the break-evens halve again.

ATOM-Max only holds short contexts. On them (Llama-3.1-8B, 300 tokens in, 150 out, 400 requests/s) it breaks even, against H200 and
against B200, at {estimated} as estimated, and at {gpu_like} as a GPU: free of charge, H200 with {free["devices"]["RBLN-ATOM-Max-CA25"]} of them would draw {free["kw"]:.0f} kW and cost
{free["usd_per_hour"]:.2f} $/h, H200 alone {rival["kw"]:.1f} kW and {rival["usd_per_hour"]:.2f} $/h.
"""


def split(tables: Tables) -> str:
    """What moves the split."""

    def both(gpu: str, table: str, **asked: Any) -> tuple[Row, Row]:
        return find(tables[table], way="integrated", gpu=gpu, **asked), find(tables[table], way="split", gpu=gpu, **asked)

    together, apart = both(H200, "lengths", prompt=4000.0, answer=60.0)
    long_together, long_apart = both(H200, "lengths", prompt=250.0, answer=1000.0)
    tight_together, tight_apart = both(H200, "targets", ttft_ms=4000.0, itl_ms=20.0)
    first_together, first_apart = both(B200, "targets", ttft_ms=500.0, itl_ms=None)
    gaudi = find(tables["targets"], way="pair", npu="Gaudi3", gpu=H200, ttft_ms=4000.0, itl_ms=20.0)
    loose = find(tables["targets"], way="pair", npu="Gaudi3", gpu=H200, ttft_ms=4000.0, itl_ms=100.0)
    return f"""- **Lengths.** Long prompts with short answers call for apart: {change(apart, together)} on H200 at 4,000 in and 60 out. Short prompts with long answers do not:
  {change(long_apart, long_together)} at 250 in and 1,000 out. On one vendor or with another's NPU the pattern is the same; what the NPU adds to
  H200 is within a few per cent nearly everywhere at Gaudi 3's price.
- **Time between tokens.** A tight target calls for apart ({change(tight_apart, tight_together)} on H200 at 20 ms and 4 s) and against NPUs: with more
  overhead per step they need many small batches (Gaudi 3: {find(tables["targets"], way="pair", npu="Gaudi3", gpu=H200, ttft_ms=4000.0, itl_ms=20.0)["units"]["decode"]:.0f} devices at 20 ms, {loose["units"]["decode"]:.0f} at 100 ms; {change(gaudi, tight_apart)} than H200 apart at 20 ms, {change(loose, alone(tables["targets"], H200, ttft_ms=4000.0, itl_ms=100.0))} than H200 alone at 100 ms).
- **Time to the first token.** A tight target makes prefill pools large and idle: at 500 ms and 50 ms, apart costs {change(first_apart, first_together)} than together on B200.
"""


def _annuity(years: float) -> float:
    """Capital charge per hour of a dollar written off over some years."""
    return replace(rules(0.0), life_years=years).capital_usd_per_hour(1.0)


def others(tables: Tables) -> str:
    """What power, network and rent say."""

    def way(gbit: float, conversion: float = 1.0, prompt: float | None = None) -> Row:
        return find(tables["network"], gbit=gbit, conversion=conversion, prompt=prompt)

    def turns(gpu: str, npu: str) -> Row:
        return next(r for r in tables["power"] if "rival" in r and r["asked"]["gpu"] == gpu and r["asked"]["npu"] == npu)

    fast = way(400.0)
    rented = [r["break_even"] / (list_price(r["asked"]["npu"], True) or 1.0) for r in tables["rent"] if "break_even" in r]
    return f"""**Electricity** decides draws only. Gaudi 3 for decode draws half as much again as H200 alone, and its small advantage turns at
{turns(H200, "Gaudi3")["tariff"]:.2f} $/kWh; REBEL100 at 15,000 USD, as efficient as a GPU, would lose against B200 from {turns(B200, REBEL)["tariff"]:.2f} $/kWh up. RNGD's low power does not help it
on the 70B model: too many cards are needed.

**Depreciation**: break-evens hold for equal lives. An NPU written off over three years beside GPUs written off over four may cost
{per_cent(_annuity(4.0) / _annuity(3.0))} of the table's price, over six years {per_cent(_annuity(4.0) / _annuity(6.0))}.

**The network** must carry 0.33 GB of KV cache for a prompt of 2,000 tokens, 13 GB/s in all. 100 Gbit/s per device are as good as
400 ({more(way(100.0), fast)}); 25 cost {more(way(25.0), fast)}, 10 {more(way(10.0), fast)}, 5 {more(way(5.0), fast)}, since prefill devices are added for their network cards. Conversion
that triples the bytes costs {more(way(100.0, 3.0), way(100.0))} at 100 Gbit/s and nothing at 400; at 8,000 tokens it costs {more(way(400.0, 3.0, 8000.0), way(400.0, 1.0, 8000.0))} at 400, and has no plan at 100. Apart on
one vendor pays for the same network, but not for conversion.

**Rents** of cloud NPUs are well above what decode for a GPU is worth: break-evens are {per_cent(min(rented))} to {per_cent(max(rented))} of the offers.
"""


def verdicts(tables: Tables) -> str:
    """The public claims, one by one."""
    rows = tables["stories"]
    heavy: dict[str, dict[str, Any]] = {
        "70B, much to read": {"model": None, "prompt": 4000.0, "answer": None},
        "70B, much to write": {"model": None, "prompt": 500.0, "answer": 4000.0},
        "8B, much to read": {"model": SMALL, "prompt": 4000.0, "answer": None},
        "8B, much to write": {"model": SMALL, "prompt": 500.0, "answer": 4000.0},
    }

    def span(new: dict[str, Any], old: dict[str, Any]) -> str:
        gains = [cost(find(rows, **old, **same)) / cost(find(rows, **new, **same)) for same in heavy.values()]
        return f"{min(gains):.2f} to {max(gains):.2f}"

    pair = {"way": "pair", "gpu": B200, "npu": "Gaudi3"}
    base, apart = {"way": "split", "gpu": "H100-SXM"}, {"way": "split", "gpu": B200}
    old = {"way": "pair", "gpu": "H100-SXM"}
    new = {"way": "integrated", "gpu": B200}
    devices = {(r["sku"], r["model"], r["as_gpu"]): r for r in tables["devices"]}
    prices = [r for r in tables["story_prices"] if "break_even" in r]
    cheap, dear = (
        [r["break_even"] for r in prices if bool(r["asked"].get("as_gpu")) is as_gpu] or [0.0] for as_gpu in (False, True)
    )

    def frontier(sku: str, model: str) -> float:
        return float(devices[sku, model, False]["written"] / ((list_price(sku, False) or 1.0) / 1000.0))

    def busy(sku: str, part: str, peak: float) -> float:
        return float(devices[sku, "Llama-3.1-70B", False][part] * 2.0 * 70.6e9 / peak)

    reading, writing = (
        " and ".join(per_cent(busy(sku, part, catalog.device(sku).peaks["fp8"])) for sku in (H200, B200))
        for part in ("read", "written")
    )
    written = {r["sku"]: r["published"] for r in tables["claims"]}
    per_watt = written["RNGD"] / 180.0 / (written["H100-SXM"] / 700.0)
    lines = [
        (
            "B200 prefill with Gaudi 3 decode gives 1.7 times the tokens per dollar of B200 for both, on common workloads (Gimlet Labs, 2025-10-13); Intel showed the pairing at the OCP Global Summit 2025 with 1.7 times on small dense models",
            "**contradicted** at list prices",
            f"{span(pair | {'as_gpu': None}, apart)} times as estimated, {span(pair | {'as_gpu': True}, apart)} if Gaudi 3 were as efficient as a GPU; for {CLAIMED_GAIN} times it would have to cost, where there is much to write, {usd(min(cheap))} to {usd(max(cheap))} as estimated, {usd(min(dear))} to {usd(max(dear))} as a GPU, not {list_price('Gaudi3', False):,.0f}; where there is much to read no price is low enough. The lengths are ours: 4,000 in and 500 out, 500 in and 4,000 out",
        ),
        (
            "That pairing gives about 3 times (much to read) to 4 times (much to write) H100 with H100; B200 alone about 2.5 times (the same, as retold by Momento)",
            "**refined**: most of it is B200",
            f"with Gaudi 3 {span(pair | {'as_gpu': None}, base)} as estimated and {span(pair | {'as_gpu': True}, base)} as a GPU; B200 apart {span(apart, base)}",
        ),
        (
            "Older GPUs with newer accelerators reach about the cost of the newest GPUs alone (Asgar, Nguyen and Katti, arXiv 2507.19635)",
            "**confirmed** where there is much to write and the accelerator is efficient, else contradicted",
            f"H100 with MI300X against B200 together: {span(old | {'npu': 'MI300X'}, new)}; with Gaudi 3 {span(old | {'npu': 'Gaudi3', 'as_gpu': None}, new)} as estimated, {span(old | {'npu': 'Gaudi3', 'as_gpu': True}, new)} as a GPU",
        ),
        (
            "Gaudi 3, MI300X and B200 are the cost-effective decoders (Gimlet Labs)",
            "**confirmed** for B200 and MI300X, **refined** for Gaudi 3",
            "written tokens/s per 1,000 USD, 70B and 8B: "
            + "; ".join(
                f"{label} {frontier(sku, 'Llama-3.1-70B'):.0f} and {frontier(sku, SMALL):.0f}"
                for label, sku in (
                    ("B200", B200),
                    ("MI300X", "MI300X"),
                    ("Gaudi 3", "Gaudi3"),
                    ("H200", H200),
                    ("H100", "H100-SXM"),
                )
            ),
        ),
        (
            "Prefill keeps GPUs above 90 % busy, decode lets them fall below 30 % (a reference design with an NPU pool by ThakiCloud)",
            "**refined**",
            f"of the FP8 peak, H200 and B200 reach {reading} reading and {writing} writing this model, at 45 ms between tokens",
        ),
        (
            "RNGD gives 3 times the performance per watt of H100 on advanced language models (FuriosaAI)",
            "**contradicted** by the maker's own later figures for an 8B model, and by fleets",
            (
                f"3,935 tokens/s at 180 W against 13,222 at 700 W is {per_watt:.2f} times per watt of nameplate; fleets with RNGD in decode give "
                f"{_pair(tables, H200, 'RNGD', SMALL, npu_price=7000.0)['tokens_per_kwh'] / 1e6:.0f} to {_pair(tables, H200, 'RNGD', SMALL, npu_price=7000.0, as_gpu=True)['tokens_per_kwh'] / 1e6:.0f} million tokens per kWh, H100 alone {_alone(tables, 'H100-SXM', SMALL)['tokens_per_kwh'] / 1e6:.0f}"
            ),
        ),
        (
            "H100 with NPUs of equal memory: 2.1 times faster at 100,000 tokens of context, 3.9 times the energy efficiency (Hybe, ISCA 2025)",
            "**refined**: equal memory explains little of it",
            f"in our models H100 already reaches 95 % of its bandwidth on weights and 77 % on the KV cache, so an equal memory speeds a step up by 1.06 to 1.29 times at most; more must come from the second device, which any pair has. The chip has no card; REBEL100 as efficient as a GPU beside H200 gives {_pair(tables, H200, REBEL, npu_price=15000.0, as_gpu=True)['tokens_per_kwh'] / _alone(tables, H200)['tokens_per_kwh']:.2f} times the tokens per kWh of H200 alone",
        ),
        (
            "AWS Trainium prefill with Cerebras decode: five times the fast-token capacity (AWS and Cerebras, 2026-03)",
            "**open**: no price, no data sheet of the decoder and no workload is public",
            "-",
        ),
    ]
    header = "| claim | verdict | our figures |\n| --- | --- | --- |\n"
    return header + "".join(f"| {claim} | {verdict} | {figures} |\n" for claim, verdict, figures in lines)


def _at(tables: Tables, gbit: float) -> Row:
    return find(tables["network"], gbit=gbit, conversion=1.0, prompt=None)


def guide(tables: Tables) -> str:
    """The half of docs/when-to-separate.md on prefill, decode and NPUs."""

    def two(table: str, gpu: str, **asked: Any) -> str:
        return change(
            find(tables[table], way="split", gpu=gpu, **asked), find(tables[table], way="integrated", gpu=gpu, **asked)
        )

    h200, b200 = _alone(tables, H200), _alone(tables, B200)
    tight = find(tables["targets"], way="pair", npu="Gaudi3", gpu=H200, ttft_ms=4000.0, itl_ms=20.0)
    tight_apart = find(tables["targets"], way="split", gpu=H200, ttft_ms=4000.0, itl_ms=20.0)
    lines = [
        (
            "Keep small fleets together",
            f"apart costs {two('loads', H200, rate=1.0)} on H200 and {two('loads', B200, rate=1.0)} on B200 at 1 request/s, {two('loads', H200, rate=None)} and {two('loads', B200, rate=None)} at 40",
            "loads",
        ),
        (
            "Take prefill and decode apart where prompts are long and answers short",
            f"4,000 in, 60 out: {two('lengths', H200, prompt=4000.0, answer=60.0)} on H200, {two('lengths', B200, prompt=4000.0, answer=60.0)} on B200",
            "lengths",
        ),
        (
            "Leave them together where answers are long",
            f"250 in, 1,000 out: apart costs {two('lengths', H200, prompt=250.0, answer=1000.0)} and {two('lengths', B200, prompt=250.0, answer=1000.0)}",
            "lengths",
        ),
        (
            "Take them apart where tokens must come fast",
            f"20 ms, first token within 4 s: {two('targets', H200, ttft_ms=4000.0, itl_ms=20.0)} and {two('targets', B200, ttft_ms=4000.0, itl_ms=20.0)}",
            "targets",
        ),
        (
            "Leave them together where the first token must come fast",
            f"500 ms and 50 ms: apart costs {two('targets', B200, ttft_ms=500.0, itl_ms=None)} on B200",
            "targets",
        ),
        (
            "Leave small models together",
            f"Llama-3.1-8B: apart costs {two('fleets', H200, model=SMALL)} and {two('fleets', B200, model=SMALL)}",
            "fleets",
        ),
        (
            "Before a second vendor, look at the next GPU",
            f"B200 alone costs {change(b200, _pair(tables, H200))} than H200 with Gaudi 3",
            "fleets",
        ),
        (
            "One vendor is enough where the NPU's price is above its break-even",
            f"Gaudi 3 (15,625 USD): {usd(even(tables, 'Gaudi3', H200))} against H200, {usd(even(tables, 'Gaudi3', B200))} against B200",
            "break_evens",
        ),
        (
            "Buy an NPU for what it is relatively better at",
            f"Gaudi 3 with H200, 70B: {more(_pair(tables, H200), h200)} writing, {more(_reverse(tables, H200), h200)} reading",
            "fleets reverse",
        ),
        (
            "Do not give an NPU the tightest token intervals",
            f"20 ms: H200 with Gaudi 3 costs {change(tight, tight_apart)} than H200 apart",
            "targets",
        ),
        (
            "Measure an NPU's decode before its price is argued about",
            f"REBEL100 breaks even against H200 at {usd(even(tables, REBEL, H200))} as estimated, {usd(even(tables, REBEL, H200, as_gpu=True))} as a GPU",
            "break_evens",
        ),
        (
            "Give every device that reads 100 Gbit/s before taking decode away from it",
            f"H200 with Gaudi 3, against 400 Gbit/s: {more(_at(tables, 25.0), _at(tables, 400.0))} at 25, {more(_at(tables, 100.0), _at(tables, 400.0))} at 100",
            "network",
        ),
        (
            "With images, settle the encoder first",
            f"Qwen3-VL-32B, four images, B200: apart with an encoder pool costs {two('fleets', B200, model=IMAGES)} than encoders beside the language model",
            "fleets",
        ),
    ]
    header = "| rule | figures | `npu_study.py` |\n| --- | --- | --- |\n"
    return header + "".join(f"| {rule} | {figures} | `{table}` |\n" for rule, figures, table in lines)
