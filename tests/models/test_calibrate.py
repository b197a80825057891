"""Calibration recovers the coefficients behind a file, keeps what the file does not tell of, and says which is which."""

import pytest
from tests.support.synthetic_runs import HEADER, measured_rows

from epd_models.calibrate import Family, calibrate, shipped_values
from epd_models.calibrate.card import as_card, card_documents, card_text
from epd_models.calibrate.reduced import NAMES, reduce_runs, times
from epd_models.catalog.coefficient_card import coefficients_from_card
from epd_models.measurements import read_measurements
from epd_models.provenance import Confidence
from epd_models.serving import closed_loop, run_of

TRUE = {"kv_bandwidth_share": 0.5, "sequence_overhead_s": 40e-6, "opening_share": 0.2, "bandwidth_share": 0.8}
FEW = {"models": ("Llama-3.1-70B",), "degrees": (2, 8), "clients": (1, 16, 128)}


def calibrated(lines):
    """What a file of these lines gives."""
    return calibrate(read_measurements("\n".join([HEADER, *lines]) + "\n"))


def by_name(one):
    """Its coefficients."""
    return {c.name: c for c in one.coefficients}


@pytest.fixture(scope="module")
def recovered():
    """Llama 3.1 70B and Qwen3-32B on two to eight H100, of somebody with other coefficients."""
    (one,) = calibrated(measured_rows(TRUE, degrees=(2, 8), clients=(1, 16, 128))).calibrated
    return one


def test_runs_reduced_once_give_the_times_of_the_models():
    """The quick sums that fits use and the closed loop of the planner agree for shipped coefficients."""
    rows = read_measurements("\n".join([HEADER, *measured_rows({}, **FEW)]) + "\n")
    runs = [(run_of(row)[0], row) for row in rows]
    interval, first = times(shipped_values(Family(architecture="hopper", engine="vllm")), reduce_runs(runs))
    loops = [closed_loop(run) for run, _ in runs]
    assert interval == pytest.approx([loop.itl_s for loop in loops])
    assert first == pytest.approx([loop.ttft_s for loop in loops])


@pytest.mark.parametrize("name", TRUE)
def test_coefficients_behind_a_file_are_recovered(recovered, name):
    """Within six per cent, drawn a little towards the shipped values."""
    found = by_name(recovered)[name]
    assert found.identified
    assert found.fitted == pytest.approx(TRUE[name], rel=0.06)
    assert found.spread < 0.1


def test_errors_are_those_of_groups_that_the_fit_has_not_seen(recovered):
    """The shipped card is a tenth off; what is fitted to some groups foretells the others to two per cent."""
    assert recovered.groups == 8
    assert recovered.before.itl.median > 0.08
    assert recovered.after.itl.median < 0.02
    assert recovered.after.ttft.points == len(recovered.lines) == 48


@pytest.mark.parametrize("name", ["expert_share", "expert_layer_overhead_s", "latent_layer_overhead_s"])
def test_dense_models_say_nothing_of_experts(recovered, name):
    """No row depends on the coefficient: it stays as shipped, to the last digit."""
    found = by_name(recovered)[name]
    assert (found.identified, found.information, found.fitted) == (False, 0.0, found.shipped)


def test_one_load_does_not_tell_bandwidth_from_overheads():
    """At one concurrency and one degree every iteration is a sum that may be cut in any way, and other loads would show how;
    with several concurrencies one overhead may stand for those that grow with the layers as well."""
    alike = {"models": ("Llama-3.1-70B", "Qwen3-32B"), "degrees": (4,)}
    (one,) = calibrated(measured_rows(TRUE, **alike, clients=(16,))).calibrated
    overheads = ("step_overhead_s", "layer_overhead_s", "narrow_layer_overhead_s", "sequence_overhead_s")
    for name in ("bandwidth_share", "decode_share", *overheads):
        found = by_name(one)[name]
        assert (found.identified, found.fitted) == (False, found.shipped), name
    (several,) = calibrated(measured_rows(TRUE, **alike, clients=(1, 16, 128))).calibrated
    assert {c.name for c in several.coefficients if c.identified} & set(overheads)


def test_without_first_tokens_nothing_is_said_of_them():
    """Only intervals: the latency of a first token, the opening burst and prefill stay as shipped."""
    lines = [",".join([*line.split(",")[:-2], "", line.split(",")[-1]]) for line in measured_rows(TRUE, **FEW)]
    (one,) = calibrated(lines).calibrated
    kept = {c.name for c in one.coefficients if not c.identified}
    assert {"prompt_overhead_s", "opening_share", "prefill_share"} <= kept
    assert (one.after.ttft, one.after.itl.points) == (None, 24)


def test_each_architecture_and_engine_is_fitted_by_itself():
    """One card for each architecture, a section for each engine, and only what was identified in it."""
    lines = measured_rows(TRUE, **FEW) + measured_rows({}, **FEW, engine="sglang") + measured_rows({}, **FEW, gpu="B200-SXM")
    found = calibrated(lines)
    assert [(one.family.architecture, one.family.engine) for one in found.calibrated] == [
        ("blackwell", "vllm"),
        ("hopper", "sglang"),
        ("hopper", "vllm"),
    ]
    cards = card_documents(found, file="runs.csv", date="2026-11-30")
    assert set(cards) == {"blackwell", "hopper"}
    assert cards["hopper"]["from"] == "hopper"
    section = cards["hopper"]["vllm"]
    assert section["source"] == "measured by the user: runs.csv, 24 rows in 4 groups"
    assert set(as_card(found.calibrated[2].fitted)) <= set(section)
    assert "expert_share" in section["note"]
    assert "expert_share" not in section


def test_a_written_card_is_one_that_the_catalogue_reads():
    """With its values, its errors, and the user as its source."""
    from ruamel.yaml import YAML

    found = calibrated(measured_rows(TRUE, **FEW))
    (card,) = card_documents(found, file="runs.csv", date="2026-11-30").values()
    text = YAML(typ="safe").load(card_text(card))
    vllm = coefficients_from_card(text, path="mine", source="mine", confidence=Confidence.ESTIMATE)["vllm"]
    assert vllm.opening_share == pytest.approx(found.calibrated[0].fitted["opening_share"], rel=0.01)
    assert (vllm.provenance.confidence, vllm.provenance.date) == (Confidence.USER, "2026-11-30")
    assert vllm.provenance.error_of("itl").points == 24
    assert set(NAMES) > set(found.calibrated[0].fitted)


def test_too_few_rows_are_refused_with_the_reason():
    """Two groups of three rows each leave nothing to hold out."""
    found = calibrated(measured_rows(TRUE, models=("Llama-3.1-70B",), degrees=(4,), clients=(1,))[:3])
    assert found.calibrated == ()
    assert "3 usable rows in 3 groups" in found.refused[0].reason
    assert "at least 8 rows in 3 groups" in found.refused[0].reason


def test_rows_that_cannot_tell_are_dropped_with_their_reasons():
    """Repeats, unknown names, no times, prefill and decode apart, more than the device's peak; the others are used."""
    good = measured_rows(TRUE, **FEW)
    bad = [
        good[0],
        good[1].replace("H100-SXM", "H1OO"),
        "Llama-3.1-70B,fp8,H100-SXM,vllm,2,2,777,512,16,,",
        "Llama-3.1-70B,fp8,H100-SXM,vllm,2,2,8192,512,256,500,9",
    ]
    found = calibrated([*good, *bad])
    assert len(found.calibrated[0].lines) == len(good)
    reasons = [one.reason for one in found.dropped]
    assert reasons[0] == "says the same as line 2"
    assert "no device card is called 'H1OO'" in reasons[1]
    assert reasons[2] == "neither ttft_ms nor itl_ms is given"
    assert "the device takes" in reasons[3]


def test_the_order_of_rows_does_not_matter():
    """The same file backwards gives the same coefficients."""
    lines = measured_rows(TRUE, **FEW)
    forwards, backwards = (calibrated(some).calibrated[0].fitted for some in (lines, lines[::-1]))
    assert forwards == pytest.approx(backwards, rel=1e-6)
