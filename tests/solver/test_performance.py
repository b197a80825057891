"""Measurements change plans as they should, travel with them, and say where they end."""

import dataclasses
import io
import json
import shutil

import jsonschema
import pytest

import epd_opt
from epd_models import catalog
from epd_models.parallelism import Parallelism
from epd_models.placement.replica import built_replica
from epd_models.pool import Settings
from epd_models.sources import kernel_tables, silicon
from epd_opt.errors import InvalidInput
from epd_opt.instance import instance_json_schema
from epd_opt.offering import context_of, loads_of
from epd_opt.plan import Plan
from epd_opt.resolve import resolve
from epd_opt.verify import verify
from support.documents import modelled
from support.kernel_tables import FakePackage
from support.profiles import stage_file, stage_rows
from support.workers import worker

ENGINE = dataclasses.replace(catalog.engine("vllm"), max_sequences=256)
A100 = worker("Qwen2.5-VL-7B", "A100-80-SXM", engine=ENGINE)


def document(text=None, *, device=0, **changes):
    """The small modelled instance on integrated workers, with a profile on one of its devices."""
    result = modelled(placements=["integrated"])
    if text is not None:
        result["devices"][device]["performance"] = {"profile": {"file": "runs.csv", "csv": text}, **changes}
    return result


def solved(content):
    """Its plan."""
    return epd_opt.solve(epd_opt.Instance(**content))


def fleet(plan):
    """What a plan is, apart from where its times come from."""
    return [pool.model_dump(exclude={"provenance", "confidence", "times"}) for pool in plan.document.pools]


@pytest.fixture(scope="module")
def plain():
    """The plan without any profile."""
    return solved(document())


def test_measured_as_modelled_is_the_same_plan(plain):
    """Times of the model itself change nothing but where the times are said to come from."""
    plan = solved(document(stage_file(*stage_rows(A100))))
    assert fleet(plan) == fleet(plain)
    assert plan.document.cost == plain.document.cost
    assert plan.document.classes == plain.document.classes
    (pool,) = plan.document.pools
    assert (pool.provenance, pool.confidence) == ("profile", "measured")
    assert {time.source for time in pool.times} == {"profile"}
    assert "18 rows of runs.csv" in next(time.note for time in pool.times if time.stage == "decode")
    assert plan.document.warnings == plain.document.warnings
    assert plain.document.pools[0].provenance == "analytic"


def test_measured_twice_as_slow_needs_more_and_twice_as_fast_less(plain):
    """Halving or doubling every measured time moves the fleet in the right direction."""
    slow = solved(document(stage_file(*stage_rows(A100, lambda _: 2.0))))
    fast = solved(document(stage_file(*stage_rows(A100, lambda _: 0.5))))
    costs = [plan.document.cost.usd_per_hour for plan in (fast, plain, slow)]
    assert costs == sorted(set(costs))
    assert costs[2] > 1.8 * costs[1]


def test_a_sku_measured_as_slow_loses():
    """Of two SKUs at about the same price, the one measured as slow is not bought."""
    content = document()
    content["devices"] = [
        {"sku": "A100-80-SXM", "name": name, "price": {"usd_per_hour": price}, "tensor_parallel": [1]}
        for name, price in (("cheap", 1.8), ("dear", 1.9))
    ]
    assert set(solved(content).document.devices) == {"cheap"}
    text = stage_file(*stage_rows(A100, lambda _: 2.0))
    content["devices"][0]["performance"] = {"profile": {"file": "runs.csv", "csv": text}}
    assert {name for name, use in solved(content).document.devices.items() if use.used} == {"dear"}


def test_what_lies_beyond_the_measurements_is_named():
    """Stages without rows, and batches beyond those measured, are warnings that say what was measured and what is asked."""
    rows = stage_rows(A100, stages=["decode"], batches=[1, 8])
    warnings = "\n".join(solved(document(stage_file(*rows))).document.warnings)
    assert "integrated-A100-80-SXM-tp1: runs.csv has no usable row of prefill at tp1" in warnings
    assert "no usable row of encode" in warnings
    assert "decode asks beyond what its profile covers: a batch of" in warnings
    assert "batches of 1 to 8 at contexts of 128 to 8192 were measured" in warnings


def test_prompts_and_images_beyond_the_measurements_are_named():
    """Prompts longer than those measured and images larger than those measured are named with their class."""
    text = stage_file(*stage_rows(A100, prompts=[128, 512], megapixels=[0.1]))
    warnings = "\n".join(solved(document(text)).document.warnings)
    assert "prompts of 800 new tokens (class 'chat'), 128 to 512 were measured" in warnings
    assert "images of 0.602 megapixels as received (class 'photo')" in warnings


def test_a_strict_profile_plans_within_the_measurements_or_not_at_all():
    """With strict, batches stay within those measured, and a stage without rows is a reason for infeasibility."""
    text = stage_file(*stage_rows(A100, batches=[1, 8, 24]))
    plan = solved(document(text, strict=True))
    assert all(pool.operating_point.max_sequences <= 24 for pool in plan.document.pools if pool.device == "A100-80-SXM")
    assert not any("beyond" in warning for warning in plan.document.warnings)
    refused = solved(document(stage_file(*stage_rows(A100, stages=["decode"])), strict=True))
    assert refused.document.status == "infeasible"
    reason = refused.document.infeasibility.reasons[0]
    assert reason.limit == "performance"
    assert "no usable row of" in reason.text


def test_a_simulation_keeps_to_a_strict_profile():
    """The replicas of a simulated plan take no more sequences than were measured."""
    plan = solved(document(stage_file(*stage_rows(A100, batches=[1, 8, 24])), strict=True))
    pool = plan.document.pools[0]
    content = plan.document.instance_document
    resolved = resolve(epd_opt.Instance(**content), cards=plan.document.cards)
    context = context_of(resolved, loads_of(resolved)[0])
    entry = next(entry for entry in resolved.entries if entry.name == pool.device)
    settings = Settings(itl_level_s=pool.operating_point.design_itl_ms / 1e3, burst_share=0.5)
    assert built_replica(context, entry, Parallelism(), pool.placement, settings).most_sequences == 24


def test_a_strict_profile_leaves_out_classes_that_ask_for_more():
    """With strict, a class whose prompts or contexts were not measured has no pool, and the reason says so."""
    text = stage_file(*stage_rows(A100, prompts=[1024, 4096], contexts=[128, 8192]))
    refused = solved(document(text, strict=True))
    reason = refused.document.infeasibility.reasons[0]
    assert (reason.limit, reason.request_class) == ("performance", "chat")
    assert "prompts of 800 new tokens" in reason.text


def test_a_plan_needs_its_profile_no_more(tmp_path, monkeypatch):
    """The file is found beside the instance, embedded in the plan, and checking the plan works after it is gone."""
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "runs.csv").write_text(stage_file(*stage_rows(A100, lambda _: 1.5)), encoding="utf-8")
    content = document()
    content["devices"][0]["performance"] = {"profile": "runs.csv"}
    (folder / "instance.json").write_text(json.dumps(content), encoding="utf-8")
    plan = epd_opt.solve(epd_opt.read(folder / "instance.json"))
    assert plan.document.instance_document["devices"][0]["performance"]["profile"]["file"] == "runs.csv"
    saved = tmp_path / "plan.json"
    plan.save(saved)
    shutil.rmtree(folder)
    monkeypatch.chdir(tmp_path)
    loaded = Plan.load(saved)
    verify(loaded)
    again = epd_opt.solve(epd_opt.Instance(**loaded.document.instance_document))
    assert fleet(again) == fleet(plan)


def test_profiles_of_instances_without_a_file_start_at_the_working_directory(tmp_path, monkeypatch):
    """An instance from a stream, and a profile from an override, are relative to where the command runs."""
    text = stage_file(*stage_rows(A100))
    (tmp_path / "runs.csv").write_text("\ufeff" + text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    content = document()
    content["devices"][0]["performance"] = {"profile": "runs.csv"}
    read = epd_opt.read(io.StringIO(json.dumps(content)))
    assert read.devices[0].performance.profile.csv == text
    override = epd_opt.read(document(), overrides=["devices.A100-80-SXM.performance={profile: runs.csv}"])
    assert override.devices[0].performance == read.devices[0].performance


BAD = {
    "a missing file": ({"profile": "rums.csv"}, "performance.profile: .*rums.csv: no such file.*did you mean runs.csv"),
    "no source": ({}, "no source is named"),
    "two sources": ({"profile": "runs.csv", "silicon": {}}, "profile and silicon are both given"),
    "strict without profile": ({"silicon": {}, "strict": True}, "strict belongs to a profile"),
    "an unknown source": ("silicone", "expected analytic, silicon or a mapping"),
    "a bare path": ("runs.csv", r"give performance: \{profile: FILE.csv\}"),
    "an unknown key": ({"profil": "runs.csv"}, "unknown key 'profil'.*did you mean profile"),
    "an unknown fallback": ({"silicon": {"fallback": "analytc"}}, "expected analytic"),
}


@pytest.mark.parametrize("name", BAD)
def test_performance_that_makes_no_sense_is_placed_and_explained(name, tmp_path):
    """Every mistake under performance is an error at its path with the nearest right thing."""
    performance, complaint = BAD[name]
    (tmp_path / "runs.csv").write_text(stage_file(*stage_rows(A100)), encoding="utf-8")
    content = document()
    content["devices"][0]["performance"] = performance
    (tmp_path / "instance.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"(?s)instance.json:1:.*{complaint}"):
        epd_opt.read(tmp_path / "instance.json")


def test_kernel_tables_for_an_encoder_alone_are_refused():
    """A device that only encodes would get nothing from tables of prefill and decode."""
    content = document()
    content["devices"][1]["performance"] = "silicon"
    with pytest.raises(InvalidInput, match=r"devices.L4.performance: kernel tables hold no times of images"):
        epd_opt.Instance(**content)


def test_a_bad_row_is_an_error_at_its_line_in_the_file_of_measurements():
    """Solving an instance whose profile has a bad row says file, line and column."""
    rows = stage_rows(A100)
    rows[3] = rows[3].rsplit(",", 1)[0] + ",-1"
    with pytest.raises(InvalidInput, match=r"runs.csv:5:1: time_ms: expected a number above 0, found -1"):
        solved(document(stage_file(*rows)))


def test_rows_that_cannot_be_used_are_warnings_of_the_plan():
    """Rows of the entry in another format are left out by line."""
    other = worker("Qwen2.5-VL-7B", "A100-80-SXM", weights="int8", engine=ENGINE)
    plan = solved(document(stage_file(*stage_rows(A100), *stage_rows(other, stages=["prefill"]))))
    assert any(
        w.startswith("A100-80-SXM: runs.csv: 4 rows left out (lines 27,") and "int8" in w for w in plan.document.warnings
    )


def test_performance_without_modelled_workers_is_refused():
    """Where only measured workers are planned with, a source of stage times would go unused."""
    content = document("stage,model\n")
    content["candidates"] = {"modelled": False}
    content["workers"] = [
        {"name": "w", "sku": "A100-80-SXM", "devices": 1, "stages": ["encode", "prefill", "decode"], "max_rate_per_s": 5}
    ]
    with pytest.raises(InvalidInput, match=r"devices.A100-80-SXM.performance: .*measured workers"):
        solved(content)


@pytest.mark.parametrize(
    "performance",
    [
        "analytic",
        "silicon",
        {"profile": "runs.csv", "strict": True},
        {"silicon": {"fallback": "analytic"}},
        {"profile": {"file": "runs.csv", "csv": "stage,model"}},
    ],
)
def test_the_schema_knows_every_form(performance):
    """Names, paths and embedded files are valid by the JSON Schema; a misspelt source is not."""
    content = document()
    content["devices"][0]["performance"] = performance
    jsonschema.validate(content, instance_json_schema())
    content["devices"][0]["performance"] = "silicone"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, instance_json_schema())


def test_analytic_is_the_default():
    """Naming the analytic model says the same as naming nothing."""
    content = document()
    content["devices"][0]["performance"] = "analytic"
    assert epd_opt.Instance(**content) == epd_opt.Instance(**document())


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Kernel tables of a stand-in, kept in a directory of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_tables.forget()
    monkeypatch.setattr(silicon, "installed", FakePackage)
    yield
    kernel_tables.forget()


def on_silicon(performance="silicon", **changes):
    """The small instance with a model and an engine that the tables know, on their times."""
    content = modelled(model="Qwen3-VL-8B", placements=["integrated"], **changes)
    content["devices"][0] |= {"tensor_parallel": [2], "performance": performance}
    return content


def test_a_plan_on_kernel_tables_needs_the_package_no_more(tables, monkeypatch):
    """Tables give the times of prefill and decode, travel with the plan, and its check works without the package."""
    plan = solved(on_silicon())
    (pool,) = [pool for pool in plan.document.pools if pool.device == "A100-80-SXM"]
    assert {time.stage: time.source for time in pool.times} == {
        "encode": "analytic",
        "prefill": "silicon",
        "decode": "silicon",
    }
    assert pool.provenance == "analytic"
    assert set(plan.document.cards["performance"]["A100-80-SXM"]["tables"]) == {"tp2"}
    loaded = Plan.load(json.loads(plan.to_json()))
    monkeypatch.setattr(silicon, "installed", lambda: None)
    verify(loaded)
    with pytest.raises(InvalidInput, match=r"devices.A100-80-SXM.performance: .*pip install 'epd-opt\[silicon\]'"):
        solved(on_silicon())


def test_workers_that_kernel_tables_do_not_cover_are_refused_with_the_reason(tables):
    """Without a fallback, an uncovered cut leaves no plan, and the reason is the package's; with one, a warning says so."""
    content = on_silicon()
    content["devices"][0]["tensor_parallel"] = [8]
    reason = solved(content).document.infeasibility.reasons[0]
    assert reason.limit == "performance"
    assert "does not cover Qwen3-VL-8B in bf16 on A100-80-SXM tp8 with vllm: num_heads" in reason.text
    content = on_silicon({"silicon": {"fallback": "analytic"}})
    content["devices"][0]["tensor_parallel"] = [8]
    plan = solved(content)
    assert plan.document.pools[0].provenance == "analytic"
    assert any("its decode times are the analytic model's" in warning for warning in plan.document.warnings)


def test_a_device_without_kernel_tables_is_an_error_at_its_entry(tables):
    """A SKU that the package has no tables of is named before anything is planned."""
    content = on_silicon()
    content["devices"][0]["sku"] = "MI300X"
    with pytest.raises(InvalidInput, match=r"devices.MI300X.performance: .*no tables of MI300X"):
        solved(content)
