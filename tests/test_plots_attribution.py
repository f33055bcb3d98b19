"""Figures of attribution and of the ladder say what their tables say, and say it in words a stranger understands."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from lengthbench.plots import attribution, finding, ladder, split, style, ticks
from lengthbench.plots.save import save

LENGTHS = [512, 1024, 2048, 4096]
MAIN = ("total", "early_token", "beyond_base")


def parts(model, scheme, length, early, beyond, end=None, half=0.004, base=256, start=1.40, **more):
    """Rows of attribution.csv for one length; `end` = (length effect, content use); half None: no interval."""
    values = {"total": early + beyond, "early_token": early, "beyond_base": beyond}
    ends = {"total": (start, start - early - beyond), "early_token": (start, start - early)}
    ends["beyond_base"] = (start - early, start - early - beyond)
    if end:
        values |= {"window_end": sum(end), "length_effect": end[0], "content_use": end[1]}
        ends |= {
            "window_end": (start - 0.1, start - 0.1 - sum(end)),
            "length_effect": (start - 0.1, start - 0.1 - end[0]),
        }
        ends["content_use"] = (start - 0.1 - end[0], start - 0.1 - sum(end))
    wide = 1 + 4 * abs(beyond)
    return [
        {
            "model": model, "scheme": scheme, "scheme_params": "", "length": length, "method": "cut",
            "base_length": base, "stride": 64, "component": name, "train_length": base,
            "nll_from": ends[name][0], "nll_to": ends[name][1], "nats": value,
            "nats_ci_low": None if half is None else value - half * wide,
            "nats_ci_high": None if half is None else value + half * wide,
            "share": value / (early + beyond), "n_scored": 32768 if name in MAIN else 2048, "n_blocks": 8,
            "s_bound": 0.002 if name == "beyond_base" else None, "verdict": "", "data": "novels",
            "dtype": "float32", "status": "ok", "detail": "", **more,
        }
        for name, value in values.items()
    ]  # fmt: skip


def failed(model, scheme, length, status="unsupported", **more):
    row = parts(model, scheme, length, 0.0, 1.0, **more)[0]
    numbers = ("nll_from", "nll_to", "nats", "nats_ci_low", "nats_ci_high", "share", "n_scored", "n_blocks")
    return [{**row, **dict.fromkeys(numbers), "status": status}]


def dilution(model="reference:alibi", scheme="alibi", **more):
    effects = zip(LENGTHS, [0.012, 0.019, 0.022, 0.024], [0.001, -0.002, 0.001, -0.001], strict=True)
    return [r for n, e, g in effects for r in parts(model, scheme, n, e, g, (0.0015, -0.0006), **more)]


def reader(model="hf/reader", scheme="rope", **more):
    effects = zip(LENGTHS, [0.015, 0.021, 0.025, 0.027], [0.012, 0.028, 0.041, 0.052], strict=True)
    return [r for n, e, g in effects for r in parts(model, scheme, n, e, g, (-0.006, 1.3 * g), start=2.9, **more)]


def breaker(model="reference:rope", scheme="rope", **more):
    effects = zip(LENGTHS, [0.011, 0.018, 0.021, 0.022], [-0.6, -1.7, -2.5, -3.0], strict=True)
    return [r for n, e, g in effects for r in parts(model, scheme, n, e, g, (1.25 * g, 0.02), **more)]


def survivor(model="reference:t5", scheme="t5", **more):
    effects = zip(LENGTHS, [0.010, 0.017, 0.020, 0.021], [-0.001, -0.008, -0.015, -0.02], strict=True)
    return [r for n, e, g in effects for r in parts(model, scheme, n, e, g, (-0.021, 0.004), **more)]


def still(model="hf/still", scheme="none", **more):
    return [r for n in LENGTHS for r in parts(model, scheme, n, 0.001, -0.0005, (0.0002, 0.0003), **more)]


def unsupported(model="reference:learned", scheme="learned"):
    return [r for n in LENGTHS for r in failed(model, scheme, n)]


def runs_out(model="hf/runs-out", scheme="rope"):
    ok = [r for r in reader(model, scheme) if r["length"] <= 1024]
    return ok + [r for n in (2048, 4096) for r in failed(model, scheme, n, "oom", start=2.9)]


def published():
    """Press et al. 2022 on WikiText-103: ALiBi from 512 to 3072, nonoverlapping 19.73 and 18.40, sliding 17.98 and 18.30."""
    common = {
        "method": "sliding",
        "base": 512,
        "half": None,
        "start": math.log(19.73),
        "stride": 1,
        "data": "wikitext-103",
    }
    rows = parts("alibi", "alibi", 3072, 0.0874, -0.0176, **common)
    rows[2] |= {"nll_from": math.log(17.98), "nll_to": math.log(18.30)}
    return rows + parts("sinusoidal", "sinusoidal", 3072, 0.05, -1.9, **common)


def several(n_models):
    makers = [dilution, reader, breaker, survivor, runs_out, still]
    return [
        row
        for i in range(n_models)
        for row in makers[i % 6](f"org{i}/a-rather-long-model-name-{i}", ["rope", "alibi"][i % 2])
    ]


def eight_lengths():
    sizes = [512 * 2**i for i in range(8)]
    return [
        r
        for i, n in enumerate(sizes)
        for r in parts("hf/long", "rope", n, 0.01 + 0.002 * i, 0.004 * i, (0.001, 0.005 * i), start=2.5)
    ]


SPLITS = {
    "family": dilution() + breaker() + survivor() + unsupported(),
    "one": dilution(),
    "reader": reader(),
    "breaker": breaker(),
    "two": dilution() + breaker(),
    "six": dilution() + reader() + breaker() + survivor() + runs_out() + still(),
    "twelve": several(12),
    "published": published(),
    "unsupported": unsupported(),
    "no interval": [r | {"nats_ci_low": None, "nats_ci_high": None} for r in reader()],
    "eight lengths": eight_lengths(),
    "one length": [r for r in dilution() + breaker() if r["length"] == 512],
    "mixed": reader() + published(),
}


def rungs_of(model, scheme, loss, longest=4096, stride=32, conditions=("full",), trained=256, half=0.02, **more):
    """Rows of context.csv: contexts c..c+S-1 for c = 2S, 4S ..., the last one longest-S+1..longest."""
    starts = [stride * 2**i for i in range(1, 12) if stride * 2**i < longest] + [longest - stride + 1]
    rows = []
    for condition in conditions:
        for i, start in enumerate(starts):
            top = min(start + stride - 1, longest)
            nll = loss(min(top, trained) if condition == "swap" else top)
            rows.append({
                "model": model, "scheme": scheme, "scheme_params": "", "length": longest, "stride": stride, "rung": i,
                "condition": condition, "context_min": start, "context_max": top, "train_length": trained,
                "n_scored": 1024, "nll": nll, "ci_low": None if nll is None or half is None else nll - half,
                "ci_high": None if nll is None or half is None else nll + half, "above_best": None,
                "above_best_ci_low": None, "above_best_ci_high": None, "data": "novels", "dtype": "float32",
                "status": "ok" if nll is not None else "unsupported", "detail": "", **more,
            })  # fmt: skip
    return rows


def power(level, gain, breaks=1e9, pace=0.7, limit=math.inf):
    """level + gain c^-0.4 at context c; beyond `breaks` some nats more with every doubling; none beyond `limit`."""

    def loss(context):
        if context > limit:
            return None
        return level + gain * context**-0.4 + pace * max(0.0, math.log2(context / breaks))

    return loss


def climb(*models):
    """Both tables; best rung and horizon as the rows have them, with an interval of one rung either side."""
    rows = [row for own in models for row in own]
    table = pd.DataFrame(rows)
    summaries = []
    for _, own in table[table["condition"] == "full"].groupby("model", sort=False):
        own = own.reset_index(drop=True)
        known = own[own["status"] == "ok"]
        head = own.iloc[0][["model", "scheme", "scheme_params", "length", "stride", "train_length"]].to_dict()
        if len(known):
            best = known["nll"].astype(float).idxmin()
            near = known.index[known["nll"].astype(float) <= known["nll"].astype(float).min() + 0.01][0]
            at = own["context_max"]
            head |= {"best_rung": at[best], "best_nll": own["nll"][best], "horizon": at[near], "epsilon": 0.01}
            head |= {"horizon_low": at[max(near - 1, 0)], "horizon_high": at[min(near + 1, len(known) - 1)]}
        summaries.append({**head, "status": "ok" if len(known) else "unsupported", "verdict": "", "detail": ""})
    return {"context": table, "context_summary": pd.DataFrame(summaries)}


def tower(n_models):
    losses = [
        power(1.3, 1.5),
        power(1.35, 2.5),
        power(1.3, 1.6, breaks=256),
        power(1.32, 1.4, breaks=512, pace=0.02),
        power(1.4, 1.2, limit=300),
        power(1.36, 1.9),
    ]
    return climb(*(
        rungs_of(f"org{i}/a-rather-long-model-name-{i}", ["rope", "alibi", "mamba"][i % 3], losses[i % 6]) for i in range(n_models)
    ))  # fmt: skip


BOTH = ("full", "swap")
LADDERS = {
    "one": lambda: climb(rungs_of("reference:alibi", "alibi", power(1.3, 1.5), conditions=BOTH)),
    "family": lambda: climb(
        rungs_of("reference:alibi", "alibi", power(1.3, 1.5)),
        rungs_of("reference:rope", "rope", power(1.25, 1.5, breaks=256)),
        rungs_of("reference:none", "none", power(1.6, 1.8, breaks=300, pace=0.4)),
        rungs_of("reference:t5", "t5", power(1.32, 1.5, breaks=1024, pace=0.1)),
        rungs_of("reference:learned", "learned", power(1.4, 1.5, limit=256)),
    ),
    "reader": lambda: climb(rungs_of("hf/reader", "rope", power(2.5, 3.0), trained=2048, conditions=BOTH)),
    "two levels": lambda: climb(
        rungs_of("reference:alibi", "alibi", power(1.3, 1.5), conditions=BOTH),
        rungs_of("hf/big", "rope", power(3.1, 2.5), trained=2048, conditions=BOTH),
    ),
    "two trained": lambda: climb(
        rungs_of("hf/a", "rope", power(2.5, 3.0), trained=2048), rungs_of("hf/b", "rope", power(2.4, 2.9, breaks=1024), trained=1024)
    ),
    "six": lambda: tower(6),
    "twelve": lambda: tower(12),
    "no interval": lambda: climb(rungs_of("hf/a", "rope", power(2.5, 3.0), half=None)),
    "no summary": lambda: {"context": climb(rungs_of("reference:rope", "rope", power(1.25, 1.5, breaks=256)))["context"]},
    "unsupported": lambda: climb(rungs_of("reference:learned", "learned", power(1.4, 1.5, limit=10))),
    "one rung": lambda: climb(rungs_of("reference:alibi", "alibi", power(1.3, 1.5))[:1]),
    "no rows": lambda: {"context": pd.DataFrame(columns=["model", "length", "context_max"]), "context_summary": pd.DataFrame()},
    "no tables": dict,
}  # fmt: skip


def draw_split(name):
    return attribution.draw({"attribution": pd.DataFrame(SPLITS[name])})


def draw_ladder(name):
    return ladder.draw(LADDERS[name]())


FIGURES = [(draw_split, name) for name in SPLITS] + [(draw_ladder, name) for name in LADDERS]


def words(figure):
    return [t.get_text() for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]


def painted(figure):
    """Texts and their boxes in pixels, without ticks outside the limits of their axis, which are never painted."""
    with style.look():
        figure.canvas.draw()
        boxes = {t: t.get_window_extent() for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()}
    outside = set()
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            ticks_ = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            outside |= {id(t.label1) for t in ticks_ if not low <= t.get_loc() <= high}
            outside |= {id(t.label1) for t in ticks_ if not t.label1.get_visible()}
    return {t: box for t, box in boxes.items() if id(t) not in outside}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "name"), FIGURES)
def test_no_words_lie_on_others_or_leave_the_figure(make, name, tmp_path):
    figure = make(name)
    save(figure, tmp_path, "figure")  # no warning from there either
    boxes = painted(figure)
    assert len(boxes) >= 2
    for text, box in boxes.items():
        assert box.x0 >= 0 and box.y0 >= 0, text.get_text()
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
    for (a, box), (b, other) in itertools.combinations(boxes.items(), 2):
        apart = box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1 or box.y1 <= other.y0 + 3 or other.y1 <= box.y0 + 3
        assert apart, f"{a.get_text()!r} on {b.get_text()!r}"


FINDINGS = {
    "one": {"gain is early-token relief"},
    "reader": {"part early-token relief, part far context"},
    "breaker": {"breaks beyond 256"},
    "published": {"gain is early-token relief (no interval)", "breaks beyond 512 (no interval)"},
    "six": {
        "gain is early-token relief", "part early-token relief, part far context", "breaks beyond 256",
        "tokens beyond 256 cost a little, early ones gain it back", "no measurable change",
        "part early-token relief, part far context; out of memory from 2048 on",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_each_model_has_its_finding_in_words(name):
    assert FINDINGS[name] <= set(words(draw_split(name)))


def label(early, beyond, end=None, **more):
    (found,) = split.read(pd.DataFrame(parts("m", "rope", 1024, early, beyond, end, **more)))
    return finding.label(found)


def test_use_of_far_context_is_said_only_where_content_and_gain_are_sure():
    assert label(0.0, 0.05, (0.0, 0.05)) == "far context helps"
    assert label(0.0, 0.05, (0.05, 0.002)) == "longer input helps, but not by what it says"
    assert label(0.0, 0.05) == "far tokens help; what they say: not tested"
    # 0.005 with an interval of 0.0041 either side lies above zero, but not above the stride's 0.002.
    assert label(0.0, 0.005, (0.0, 0.05)) == "far context is read, without net gain"
    assert label(0.02, 0.0, (-0.05, 0.05)) == "gain is early-token relief; far context is read, without net gain"
    assert label(0.003, -0.05, (-0.05, 0.0)) == "worse when longer"
    assert label(0.049, -0.05, (-0.05, 0.0)) == "tokens beyond 256 cost a little, early ones gain it back"
    assert label(0.02, -0.0155, half=0.016) == "early-token relief, without net gain"
    assert label(0.0, 0.05, (0.0, 0.05), half=0.5) == "no measurable change"
    assert label(0.0, -3.0, half=0.3) == "no measurable change"  # -3 +- 3.9
    assert label(0.0, -0.8, half=0.03) == "worse when longer"  # -0.8 +- 0.126 may be less than a doubling
    assert label(0.0, -0.8, half=0.02) == "breaks beyond 256"
    assert label(0.0, 0.05, (0.0, 0.05), half=None) == "far context helps (no interval)"


def test_the_length_before_the_damage_is_the_last_that_is_fine():
    rows = (
        parts("m", "rope", 512, 0.01, 0.0) + parts("m", "rope", 1024, 0.01, -0.8) + parts("m", "rope", 2048, 0.01, -0.9)
    )
    (found,) = split.read(pd.DataFrame(rows))
    assert finding.label(found) == "breaks beyond 512"
    (found,) = split.read(pd.DataFrame(rows + parts("m", "rope", 4096, 0.01, 0.0)))
    assert finding.label(found) == "breaks at 1024, 2048"
    (found,) = split.read(pd.DataFrame(parts("m", "rope", 512, 0.01, -0.2) + parts("m", "rope", 1024, 0.01, -0.9)))
    assert finding.label(found) == "breaks beyond 256"  # at 512 it is not fine any more


def test_the_reading_of_the_table_is_said_where_there_is_one():
    assert label(0.02, 0.05, (0.0, 0.05), reading="uses far context") == "uses far context"
    assert label(0.02, 0.0, half=None, reading="no interval") == "gain is early-token relief (no interval)"
    rows = parts("m", "rope", 512, 0.02, 0.0, reading="early-token relief only") + parts(
        "m", "rope", 1024, 0.0, -1.0, reading="breaks beyond 256"
    )
    (found,) = split.read(pd.DataFrame(rows))
    assert finding.label(found) == "breaks beyond 512"


def test_a_length_that_fails_in_every_component_is_told_once():
    failing = [r | {"component": name} for name in MAIN for r in failed("m", "rope", 1024, "nonfinite")]
    rows = parts("m", "rope", 512, 0.02, 0.0) + failing + parts("m", "rope", 2048, 0.02, 0.0)
    (found,) = split.read(pd.DataFrame(rows))
    assert finding.label(found) == "gain is early-token relief; no finite loss at 1024"
    assert list(found.failed(split.ALL)) == [False, True, False] and not found.failed(split.END).any()


def test_the_numbers_of_the_longest_length_are_written_out():
    shown = words(draw_split("published"))
    assert "512 to 3072: perplexity 19.7 to 18.4; total +0.070 = early tokens +0.087, beyond 512 −0.018" in shown
    line = "256 to 4096: perplexity 4.06 to 3.96; total +0.023 = early tokens +0.024, beyond 256 −0.001"
    assert any(w.startswith(f"{line} [−0.005, +0.003]; content −0.001 [") for w in words(draw_split("one")))


def heights(axes, name):
    """(bottom, height) of the bars of a part, a pair a length."""
    (own,) = [c for c in axes.containers if c.get_label() == name]
    return [(round(bar.get_y(), 9), round(bar.get_height(), 9)) for bar in own]


def test_bars_are_the_signed_numbers_stacked_from_zero():
    left, end, _ = draw_split("reader").axes
    assert heights(left, "early_token") == [(0, 0.015), (0, 0.021), (0, 0.025), (0, 0.027)]
    assert heights(left, "beyond_base") == [(0.015, 0.012), (0.021, 0.028), (0.025, 0.041), (0.027, 0.052)]
    assert heights(end, "length_effect") == [(0, -0.006)] * 4
    assert heights(end, "content_use") == [(0, 0.0156), (0, 0.0364), (0, 0.0533), (0, 0.0676)]
    (total,) = [line for line in left.get_lines() if line.get_label() == "total"]
    np.testing.assert_allclose(total.get_ydata(), [0.027, 0.049, 0.066, 0.079])
    (axes, _, *_) = draw_split("published").axes
    assert heights(axes, "early_token") == [(0, 0.0874)] and heights(axes, "beyond_base") == [(0, -0.0176)]
    (total,) = [line for line in axes.get_lines() if line.get_label() == "total"]
    assert total.get_ydata()[0] == pytest.approx(0.0698)


def segments(axes):
    """(low, high) of every drawn interval."""
    return {
        tuple(round(y, 6) for y in path.vertices[:, 1])
        for c in axes.collections
        for path in c.get_paths()
        if len(path.vertices) == 2
    }


def test_the_intervals_of_the_sum_and_of_the_part_beyond_are_drawn():
    (left, *_) = draw_split("reader").axes
    # At 512: half width 0.004 (1 + 4 * 0.012); the part beyond stands on 0.015 of early tokens.
    half = 0.004 * 1.048
    assert {(round(0.027 - half, 6), round(0.027 + half, 6))} <= segments(left)
    assert len(segments(left)) == 4  # of 8 intervals the pairs coincide: only G moves the sum here
    (left, *_) = draw_split("breaker").axes
    half = 0.004 * 13
    assert (round(-3.0 - half, 6), round(-3.0 + half, 6)) in segments(left)  # beyond alone, from zero
    assert (round(-2.978 - half, 6), round(-2.978 + half, 6)) in segments(left)  # the sum
    assert not any(math.isfinite(low) for low, _ in segments(draw_split("no interval").axes[0]))


def test_curves_fan_out_from_the_base_length():
    axes = draw_split("breaker").axes[2]
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert list(drawn["full"].get_xdata()) == [256, *LENGTHS]
    np.testing.assert_allclose(drawn["full"].get_ydata(), [1.4, 1.989, 3.082, 3.879, 4.378])
    np.testing.assert_allclose(drawn["cut"].get_ydata(), [1.4, 1.389, 1.382, 1.379, 1.378])
    np.testing.assert_allclose(drawn["base"].get_ydata(), [1.4] * 5)
    assert {"base", "cut", "full"} <= set(words(axes.figure))
    assert [list(v.get_xdata()) for v in axes.get_lines() if list(v.get_ydata()) == [0, 1]] == [[256, 256]]


def test_sliding_curves_are_the_two_protocols():
    axes = draw_split("published").axes[1]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    np.testing.assert_allclose(drawn["sliding"], [math.log(17.98), math.log(18.30)])
    np.testing.assert_allclose(drawn["full"], [math.log(19.73), math.log(19.73) - 0.0698])
    assert "cut" not in drawn


def test_an_exploding_model_leaves_the_others_their_scale():
    axes = draw_split("two").axes
    assert len(axes) == 6
    assert axes[0].get_ylim()[0] < -3 and axes[3].get_ylim()[0] > -0.02 and axes[3].get_ylim()[1] < 0.04


def test_what_was_not_measured_has_no_axes_and_says_so():
    figure = draw_split("mixed")
    assert words(figure).count("not measured") == 2
    assert len(figure.axes) == 3 + 2 + 2
    assert "At the window's end" not in words(draw_split("published"))


def test_failed_lengths_are_crosses_and_failed_models_are_named():
    left = draw_split("six").axes[3 * 4]
    (crosses,) = [line for line in left.get_lines() if line.get_label() == "failed"]
    assert list(crosses.get_xdata()) == [2, 3]
    shown = words(draw_split("family"))
    assert "Not shown: learned: no positions beyond 256." in shown and "learned" not in shown
    shown = words(draw_split("unsupported"))
    assert {"What a longer input changes: no value to draw", "learned: no positions beyond 256"} <= set(shown)


def test_methods_bases_and_strides_of_one_model_are_kept_apart():
    rows = dilution() + dilution(method="sliding") + [r | {"stride": 8} for r in dilution() if r["component"] in MAIN]
    found = split.read(pd.DataFrame(rows))
    assert [s.name for s in found] == ["ALiBi, sliding", "ALiBi, cut, stride 8", "ALiBi, cut, stride 64"]
    assert all(len(s.lengths) == 4 for s in found)
    # The window's end was measured with one stride only, and goes with both.
    np.testing.assert_allclose([s.part("content_use").nats[0] for s in found], [-0.0006] * 3)
    rows = dilution() + [r for r in dilution(base=512) if r["length"] > 512]
    assert [s.name for s in split.read(pd.DataFrame(rows))] == ["ALiBi, from 256", "ALiBi, from 512"]


def test_two_strides_at_the_windows_end_do_not_mix():
    ends_only = [r | {"stride": 32, "nats": 9.0} for r in dilution() if r["component"] not in MAIN]
    (found,) = split.read(pd.DataFrame(dilution() + ends_only))
    np.testing.assert_allclose(found.part("content_use").nats, [-0.0006] * 4)
    (found,) = split.read(pd.DataFrame([r for r in dilution() if r["component"] in MAIN] + ends_only))
    np.testing.assert_allclose(found.part("content_use").nats, [9.0] * 4)


@pytest.mark.parametrize(
    "table", [None, pd.DataFrame(), pd.DataFrame(columns=["model", "length", "component", "base_length"])]
)
def test_no_rows_of_attribution_are_said_to_be_none(table):
    tables = {} if table is None else {"attribution": table}
    assert "What a longer input changes: no value to draw" in words(attribution.draw(tables))


def test_targets_of_the_windows_end_are_not_counted_in():
    assert "novels · 32,768 targets · float32 · method: cut · thin bars: 95 % interval" in words(draw_split("one"))


def line_of(figure, name):
    (line,) = [line for axes in figure.axes for line in axes.get_lines() if line.get_label() == name]
    return line


def test_a_ladder_is_its_rungs_with_the_swap_dashed():
    figure = draw_ladder("one")
    line = line_of(figure, "ALiBi")
    assert list(line.get_xdata()) == [95, 159, 287, 543, 1055, 2079, 4096]
    np.testing.assert_allclose(line.get_ydata(), [1.3 + 1.5 * c**-0.4 for c in (95, 159, 287, 543, 1055, 2079, 4096)])
    swap = line_of(figure, "ALiBi/swap")
    assert swap.get_linestyle() == "--" and swap.get_ydata()[-1] == pytest.approx(1.3 + 1.5 * 256**-0.4)
    (band,) = figure.axes[0].collections
    assert {(4096, round(1.28 + 1.5 * 4096**-0.4, 6))} <= {(x, round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert "ALiBi: more context still helps at 4096 tokens" in words(figure)


def test_a_paired_interval_is_shaded_around_the_line_instead():
    tables = LADDERS["one"]()
    nll = tables["context"]["nll"].astype(float)
    above = nll - (1.3 + 1.5 * 4096**-0.4)
    more = {"above_best": above, "above_best_ci_low": 0.9 * above, "above_best_ci_high": 1.2 * above}
    figure = ladder.draw({**tables, "context": tables["context"].assign(**more)})
    (band,) = figure.axes[0].collections
    best, first = 1.3 + 1.5 * 4096**-0.4, 1.3 + 1.5 * 95**-0.4
    corners = {(x, round(y, 6)) for x, y in band.get_paths()[0].vertices}
    assert {
        (4096, round(best, 6)),
        (95, round(best + 0.9 * (first - best), 6)),
        (95, round(best + 1.2 * (first - best), 6)),
    } <= corners
    assert any(w.endswith("shaded: 95 % interval of the distance to the best rung") for w in words(figure))


def test_a_loss_without_end_is_led_to_by_dots():
    tables = LADDERS["family"]()
    table = tables["context"]
    gone = (table["model"] == "reference:rope") & (table["context_max"] > 600)
    figure = ladder.draw({**tables, "context": table.assign(nll=table["nll"].astype(float).where(~gone, np.inf))})
    (dots,) = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == ":"]
    assert list(dots.get_xdata()) == [543, 1055] and dots.get_ydata()[1] == figure.axes[0].get_ylim()[1]
    assert "RoPE: infinite from 1055 on" in words(figure)


def test_best_rung_and_horizon_are_marked():
    figure = draw_ladder("family")
    ring = line_of(figure, "T5 bias/best")
    assert list(ring.get_xdata()) == [1055]
    assert {"T5 bias: 1055 [543, 2079]", "RoPE: 159 [95, 287]", "ALiBi: 4096 [2079, 4096]"} <= set(words(figure))
    horizons = [line.get_xdata()[0] for line in figure.axes[1].get_lines() if line.get_label() == "horizon"]
    assert sorted(horizons) == [159, 159, 287, 1055, 4096]
    assert "Horizon: the smallest context within 0.01 nats of the best rung, with its 95 % interval." in words(figure)
    assert "learned: no positions beyond 256" in words(figure)


def test_a_model_that_breaks_leaves_at_the_top_and_says_how_far_it_goes():
    figure = draw_ladder("family")
    # 1.25 + 1.5 * 4096^-0.4 + 0.7 * 4 = 4.104
    assert any(w.startswith("RoPE: ") and w.endswith("4.10 at 4096") for w in words(figure))
    assert figure.axes[0].get_ylim()[1] < 2.6
    assert any("↑ 4.16 at 4096" in w for w in words(draw_ladder("twelve")))


def test_many_ladders_or_very_different_ones_get_a_panel_each():
    assert len(draw_ladder("six").axes) == 2
    assert len(draw_ladder("twelve").axes) == 12
    low, high = (axes.get_ylim() for axes in draw_ladder("two levels").axes)
    assert low[1] < 1.7 and high[0] > 3.0


def test_without_a_summary_the_lowest_loss_is_the_best_rung():
    figure = draw_ladder("no summary")
    assert list(line_of(figure, "RoPE/best").get_xdata()) == [159]
    assert "horizon" not in " ".join(words(figure)).lower()


def test_the_training_lengths_of_ladders_are_marked():
    figure = draw_ladder("family")
    assert "trained at 256" in words(figure)
    for axes in figure.axes:
        assert [list(v.get_xdata()) for v in axes.get_lines() if list(v.get_ydata()) == [0, 1]] == [[256, 256]]
    axes = draw_ladder("two trained").axes[0]
    assert sorted(v.get_xdata()[0] for v in axes.get_lines() if v.get_marker() == "|") == [1024, 2048]


@pytest.mark.parametrize(("make", "name"), [(draw_split, "six"), (draw_ladder, "family"), (draw_ladder, "twelve")])
def test_equal_tables_give_equal_files(make, name, tmp_path):
    first, second = save(make(name), tmp_path / "a", "figure"), save(make(name), tmp_path / "b", "figure")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_the_order_of_rows_does_not_matter():
    for name in ("six", "mixed"):
        table = pd.DataFrame(SPLITS[name])
        shuffled = table.sample(frac=1, random_state=3)
        shuffled = shuffled.set_index("model").loc[list(dict.fromkeys(table["model"]))].reset_index()
        plain, other = (attribution.draw({"attribution": t}) for t in (table, shuffled))
        assert words(plain) == words(other)
        assert [a.get_ylim() for a in plain.axes] == [a.get_ylim() for a in other.axes]


def test_ticks_of_differences_have_a_sign():
    assert [ticks.signed([-0.02, 0, 0.02])(v, None) for v in (-0.02, 0.0, 0.02)] == ["−0.02", "0", "+0.02"]
    assert [ticks.alike_in_step([1.3, 1.35])(v, None) for v in (1.3, 1.35)] == ["1.30", "1.35"]
    assert [finding.nats(v) for v in (0.0211, -3.051, 0.0002, -0.0004)] == ["+0.021", "−3.05", "0", "0"]
