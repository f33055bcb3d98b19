"""Figures of retrieval say what their tables say: cells, hatches, reasons, findings; and nothing lies on anything."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from lengthbench.plots import (
    contrast,
    pairs,
    reach,
    retrieval,
    retrieval_gain,
    retrieval_positions,
    search,
    shade,
    sheet,
    style,
    tiles,
)
from lengthbench.plots.save import save

LENGTHS = [128, 256, 512, 1024, 2048]
NAMES = ("start", "middle", "end")
ELEVEN = tuple(f"{10 * i}%" for i in range(11))


def wilson(k, n, z=1.959964):
    middle, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return max(0.0, middle - half), min(1.0, middle + half)


def needle(model, scheme, hits, lengths=LENGTHS, positions=NAMES, gain=None, half=0.3, n=20, absent=0.05, **more):
    """Rows of needle.csv. `hits(length, depth)` of n trials, or a status; `gain(length, depth)` in nats."""
    rows = []
    for length, (i, position) in itertools.product(lengths, enumerate(positions)):
        depth = i / (len(positions) - 1) if len(positions) > 1 else 0.5
        k = hits(length, depth)
        ok = not isinstance(k, str)
        low, high = wilson(k, n) if ok else (None, None)
        nats = (gain(length, depth) if gain else 6.0 * k / n - 0.1) if ok else None
        rows.append({
            "model": model, "scheme": scheme, "scheme_params": "", "task": "recall", "task_version": 1, "mode": "score",
            "length": length, "position": position, "depth": depth if ok else None, "train_length": 256,
            "n_trials": n if ok else None, "exact_rate": k / n if ok else None, "ci_low": low, "ci_high": high,
            "choice_rate": 0.5 if ok else None, "chance": 0.1, "contains_rate": None, "answer_nll": 2.0 if ok else None,
            "absent_exact_rate": absent if ok else None, "absent_nll": 3.0 if ok else None,
            "oracle_exact_rate": 1.0 if ok else None, "evidence_gain": nats,
            "gain_ci_low": nats - half if ok else None, "gain_ci_high": nats + half if ok else None,
            "above_absent": low > absent if ok else None, "data": "novels", "dtype": "float32",
            "status": "ok" if ok else k, "detail": "", **more,
        })  # fmt: skip
    return rows


def perfect(model="hf/perfect", scheme="alibi", **more):
    return needle(model, scheme, lambda length, depth: 20, **more)


def window(model="reference:alibi", scheme="alibi", sees=300, **more):
    """Finds what stands within the last `sees` tokens, and always all of it where the whole input does."""
    return needle(model, scheme, lambda n, d: 20 if n <= sees or (1 - d) * n < sees * 0.9 else 0, **more)


def breaker(model="reference:rope", scheme="rope", **more):
    return needle(
        model, scheme, lambda n, d: 19 if n <= 256 else 0, gain=lambda n, d: 5.0 if n <= 256 else -0.4, **more
    )


def chance(model="reference:none", scheme="none", **more):
    return needle(
        model, scheme, lambda n, d: int(n / 128 + 2 * d) % 3, gain=lambda n, d: 0.05 * (d - 0.5), absent=0.1, **more
    )


def learned(model="reference:learned", scheme="learned", **more):
    return needle(model, scheme, lambda n, d: 18 if n <= 256 else "unsupported", **more)


def unsupported(model="hf/never", scheme="learned", **more):
    return needle(model, scheme, lambda n, d: "unsupported", **more)


def lost(model="hf/lost-in-the-middle", scheme="yarn", **more):
    return needle(model, scheme, lambda n, d: 20 if n <= 512 or d in (0, 1) else 1, **more)


def weak(model="reference:t5", scheme="t5", **more):
    return needle(model, scheme, lambda n, d: max(0, int(11 - n / 128 + 3 * d)), **more)


def dies(model="hf/runs-out", scheme="rope", **more):
    return needle(model, scheme, lambda n, d: "oom" if n > 1024 else 17, **more)


def patchy(model="hf/patchy", scheme="rope", **more):
    """Cells that fail one by one, each for another reason."""
    why = {
        (256, 0.5): "nonfinite",
        (512, 0.0): "error",
        (1024, 1.0): "oom",
        (1024, 0.5): "oom",
        (2048, 0.0): "too_short",
    }
    return needle(model, scheme, lambda n, d: why.get((n, d), 14), **more)


def small(model="reference:tiny", scheme="rope", **more):
    """Never the right answer, but the evidence lowers the loss near the end."""
    return needle(
        model, scheme, lambda n, d: 0, gain=lambda n, d: (1.8 if d == 1 else 0.1) / math.log2(n / 32), half=0.2, **more
    )


def generated(model="hf/chat", scheme="yarn", **more):
    rows = needle(model, scheme, lambda n, d: 9 if n <= 1024 else 2, mode="generate", answer_nll=None, **more)
    bare = {"evidence_gain": None, "gain_ci_low": None, "gain_ci_high": None, "choice_rate": None}
    return [{**r, **bare, "contains_rate": min(1.0, r["exact_rate"] + 0.35)} for r in rows]


MAKERS = [perfect, window, breaker, chance, learned, lost, weak, dies, unsupported, patchy, small, generated]


def many(count, **more):
    return [r for i in range(count) for r in MAKERS[i % 11](f"org{i}/a-rather-long-model-name-{i}", **more)]


def family(**more):
    return chance(**more) + learned(**more) + breaker(**more) + weak(**more) + window(**more)


def tasks(rows, *names):
    return [{**r, "task": name} for r in rows for name in names]


TABLES = {
    "perfect": perfect,
    "window": window,
    "breaker": breaker,
    "chance": chance,
    "learned": learned,
    "unsupported": unsupported,
    "patchy": patchy,
    "small": small,
    "generate": generated,
    "two": lambda: window() + breaker(),
    "family": family,
    "six": lambda: family() + lost(),
    "twelve": lambda: many(12),
    "twelve, two tasks": lambda: tasks(many(12), "recall", "passkey"),
    "two, six tasks": lambda: tasks(window() + breaker(), "recall", "passkey", "kv", "trace", "documents", "copy"),
    "eleven depths": lambda: window(positions=ELEVEN, lengths=[128, 256, 512, 1024, 2048, 4096, 8192]),
    "six, eleven depths": lambda: [r for make in MAKERS[:6] for r in make(positions=ELEVEN)],
    "both modes": lambda: perfect("hf/chat", "yarn") + generated(),
    "one length": lambda: window(lengths=[1024]) + breaker(lengths=[1024]),
    "one cell": lambda: window(lengths=[1024], positions=("middle",)),
    "sixteen lengths": lambda: window(lengths=[256 * i for i in range(1, 17)]) + breaker(lengths=[256 * i for i in range(1, 17)]),
    "other lengths": lambda: window() + perfect("hf/big", "rope", lengths=[8192, 16384, 131072], train_length=131072),
    "outside": lambda: perfect("hf/big", train_length=8192),
    "many trials": lambda: needle("hf/many", "rope", lambda n, d: 499 if n < 512 else 1, n=500),
    "no control": lambda: [{**r, "above_absent": None, "absent_exact_rate": None} for r in weak()],
    "odd names": lambda: window("dir/成$x^$\nfin", task="my $task$ with a name that is much too long to be read in a title"),
}  # fmt: skip


def ratios(model, scheme, values, train_length=256, lengths=(256, 512, 1024, 2048, 4096), **more):
    """Rows of ppl.csv; None: no numbers."""
    return [
        {
            "model": model, "scheme": scheme, "scheme_params": "", "protocol": "nonoverlapping", "length": n,
            "train_length": train_length, "n_scored": 49152 if v else None, "nll": math.log(v) if v else None, "ppl": v,
            "bits_per_byte": math.log2(v) if v else None, "ci_low": None, "ci_high": None, "tokenizer": "bytes",
            "dtype": "float32", "data": "novels", "status": "ok" if v else "unsupported", "detail": "", **more,
        }
        for n, v in zip(lengths, values, strict=True)
    ]  # fmt: skip


FLAT, RISING, BREAKING = (4.0, 3.98, 3.96, 3.95, 3.94), (4.3, 4.35, 4.7, 6.0, 8.6), (3.9, 7.3, 20.9, 39.7, 57.9)
SWEEP = (
    ratios("reference:none", "none", (6.5, 8.1, 13.1, 21.2, 29.5))
    + ratios("reference:learned", "learned", (4.9, None, None, None, None))
    + ratios("reference:rope", "rope", BREAKING)
    + ratios("reference:t5", "t5", RISING)
    + ratios("reference:alibi", "alibi", FLAT)
)


def sweep_of(rows):
    """A sweep for each model of the rows: flat, rising or breaking in turn."""
    models = dict.fromkeys((r["model"], r["scheme"]) for r in rows)
    return [r for i, key in enumerate(models) for r in ratios(*key, (FLAT, RISING, BREAKING)[i % 3])]


CONTRASTS = {
    "family": lambda: (SWEEP, family()),
    "one": lambda: (ratios("reference:alibi", "alibi", FLAT), window()),
    "two": lambda: (SWEEP, window() + breaker()),
    "six": lambda: (sweep_of(many(6)), many(6)),
    "twelve": lambda: (sweep_of(many(12)), many(12)),
    "two tasks": lambda: (SWEEP, tasks(family(), "recall", "passkey")),
    "eleven depths": lambda: (SWEEP, window(positions=ELEVEN)),
    "other lengths": lambda: (SWEEP, window(lengths=[300, 3000])),
    "beyond none": lambda: (SWEEP, window(lengths=[128, 256])),
    "two trained": lambda: (
        SWEEP + ratios("hf/big", "rope", FLAT, 2048, (1024, 2048, 4096, 8192, 16384)),
        window() + perfect("hf/big", "rope", train_length=2048, lengths=[2048, 4096, 8192]),
    ),
    "infinite": lambda: (ratios("reference:alibi", "alibi", (4.0, 5.0, 9.0, 1e30, math.inf)), window()),
}  # fmt: skip


def table(name):
    return {"needle": pd.DataFrame(TABLES[name]())}


def draw_map(name):
    return retrieval.draw(table(name))


def draw_gain(name):
    return retrieval_gain.draw(table(name))


def draw_positions(name):
    return retrieval_positions.draw(table(name))


def draw_contrast(name):
    sweep, rows = CONTRASTS[name]()
    return contrast.draw({"ppl": pd.DataFrame(sweep), "needle": pd.DataFrame(rows)})


FIGURES = [(make, name) for make in (draw_map, draw_gain, draw_positions) for name in TABLES]
FIGURES += [(draw_contrast, name) for name in CONTRASTS]


def words(figure):
    return [t.get_text() for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]


def title(figure):
    return next(t.get_text() for t in figure.texts if t.get_weight() == "bold" and t.get_fontsize() == style.TITLE)


def painted(figure):
    """Texts and their boxes in pixels, without ticks outside the limits of their axis, which are never painted."""
    with style.look():
        figure.canvas.draw()
        boxes = {t: Text.get_window_extent(t) for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()}
    outside = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not min(limits) <= tick.get_loc() <= max(limits) or not tick.label1.get_visible():
                    outside.add(id(tick.label1))
    return {t: box for t, box in boxes.items() if id(t) not in outside}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "name"), FIGURES)
def test_no_words_lie_on_others_or_leave_the_figure(make, name):
    figure = make(name)
    boxes = painted(figure)
    assert len(boxes) >= 2
    for text, box in boxes.items():
        assert box.x0 >= 0 and box.y0 >= 0, text.get_text()
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
    for (a, box), (b, other) in itertools.combinations(boxes.items(), 2):
        apart = box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1 or box.y1 <= other.y0 + 3 or other.y1 <= box.y0 + 3
        assert apart, f"{a.get_text()!r} on {b.get_text()!r}"


@pytest.mark.parametrize(
    ("make", "name"), [(draw_map, "six"), (draw_gain, "six"), (draw_positions, "six"), (draw_contrast, "six")]
)
def test_equal_tables_give_equal_bytes(make, name, tmp_path):
    first, again = save(make(name), tmp_path / "a", "figure"), save(make(name), tmp_path / "b", "figure")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


@pytest.mark.parametrize("needles", [None, pd.DataFrame(), pd.DataFrame(columns=["model", "length", "position"])])
def test_no_rows_are_said_to_be_none(needles):
    tables = {} if needles is None else {"needle": needles}
    for draw in (retrieval.draw, retrieval_gain.draw, retrieval_positions.draw, contrast.draw):
        assert title(draw(tables)).endswith(": no value to draw")


def test_a_table_without_numbers_says_why():
    for draw in (retrieval.draw, retrieval_gain.draw, retrieval_positions.draw, contrast.draw):
        figure = draw(table("unsupported") | {"ppl": pd.DataFrame(SWEEP)})
        assert title(figure).endswith(": no value to draw") and "never: unsupported from 128 on" in words(figure)


def at(axes, label):
    """(column, row) of every patch of a kind; a block of failures is told by its extent too."""
    found = [p for p in axes.patches if p.get_label() == label]
    if label == "failed":
        return {(p.get_x() + 0.5, p.get_y() + 0.5, p.get_width(), p.get_height()) for p in found}
    return {(p.get_x() + 0.5, p.get_y() + 0.5) for p in found}


def printed(axes):
    """Words by (column, row) of the cell they stand in; the number of trials apart."""
    found = {}
    for text in axes.texts:
        x, y = text.get_position()
        found.setdefault((round(x), round(y)), []).append(text.get_text())
    return found


def test_a_map_prints_each_rate_and_its_trials():
    (axes,) = draw_map("window").axes
    assert at(axes, "cell") == {(c, r) for c in range(5) for r in range(3)}
    found = printed(axes)
    assert {k: sorted(v) for k, v in found.items() if k[0] == 1} == {
        (1, r): ["100 %", "n=20"] for r in range(3)
    }  # at 256
    assert [sorted(found[3, r]) for r in range(3)] == [["0 %", "n=20"], ["0 %", "n=20"], ["100 %", "n=20"]]  # at 1024
    shown = words(axes.figure)
    assert "task recall · answers scored, not generated · novels · 20 trials a cell · float32" in shown


def test_cells_that_do_not_beat_the_control_are_hatched():
    (axes,) = draw_map("window").axes
    assert at(axes, "hatched") == {(2, 0), (3, 0), (4, 0), (3, 1), (4, 1)}
    assert all(p.get_hatch() for p in axes.patches if p.get_label() == "hatched")
    assert "no better than without the evidence" in words(axes.figure)
    (axes,) = draw_map("perfect").axes
    assert not at(axes, "hatched") and "no better than without the evidence" not in words(axes.figure)
    (axes,) = draw_map("chance").axes
    assert at(axes, "hatched") == at(axes, "cell")


def test_a_control_that_the_table_does_not_judge_is_held_against_the_interval():
    bare = [{**r, "above_absent": None} for r in window()]
    (axes,) = retrieval.draw({"needle": pd.DataFrame(bare)}).axes
    assert at(axes, "hatched") == {(2, 0), (3, 0), (4, 0), (3, 1), (4, 1)}
    figure = draw_map("no control")
    assert not at(figure.axes[0], "hatched")
    assert any(w.startswith("Without a control") for w in words(figure))
    assert title(figure) == "T5 bias: 0 to 65 % right, but no control says what guessing gives"


def test_truths_are_read_as_csv_writes_them(tmp_path):
    pd.DataFrame(window() + unsupported()).to_csv(tmp_path / "needle.csv", index=False)
    figure = retrieval.draw({"needle": pd.read_csv(tmp_path / "needle.csv")})
    by_name = {frozenset(at(axes, "hatched")) for axes in figure.axes}
    assert frozenset({(2, 0), (3, 0), (4, 0), (3, 1), (4, 1)}) in by_name
    lower = [
        {**r, "above_absent": None if r["above_absent"] is None else str(r["above_absent"]).lower()} for r in window()
    ]
    (found,) = search.read(pd.DataFrame(lower))
    np.testing.assert_array_equal(found.beats, [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])


def test_rates_near_the_ends_are_not_rounded_to_them():
    (axes,) = draw_map("many trials").axes
    assert printed(axes)[0, 0][0] == ">99 %" and printed(axes)[3, 0][0] == "<1 %"
    assert [reach.percent(v) for v in (0, 0.004, 0.05, 0.5, 0.996, 1)] == ["0", "<1", "5", "50", ">99", "100"]


def test_shades_darken_with_the_rate_in_grey_too():
    def grey(color):
        return float(np.dot(to_rgb(color), [0.299, 0.587, 0.114]))

    ramp = [grey(shade.rate().color(v / 20)) for v in range(21)]
    assert all(a > b for a, b in itertools.pairwise(ramp))
    two_ways = shade.Shade("evidence_gain", 2.0)
    assert grey(two_ways.color(0)) > 0.9
    for side in (1, -1):
        ramp = [grey(two_ways.color(side * v / 10)) for v in range(21)]
        assert all(a > b for a, b in itertools.pairwise(ramp))
    assert two_ways.color(2) == two_ways.color(50) != two_ways.color(-2)


def contrast_ratio(color, other):
    def luminance(c):
        rgb = np.array(to_rgb(c))
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])

    high, low = sorted((luminance(color), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_words_can_be_read_on_every_shade():
    grounds = [shade.rate().color(v / 50) for v in range(51)]
    grounds += [shade.Shade("evidence_gain", 1.0).color(v / 25) for v in range(-25, 26)]
    assert min(contrast_ratio(ground, shade.on(ground)) for ground in grounds) >= 3.8


def test_cells_that_failed_alike_are_one_block_with_the_reason():
    (axes,) = draw_map("learned").axes
    assert at(axes, "failed") == {(2, 0, 3, 3)} and at(axes, "cell") == {(c, r) for c in (0, 1) for r in range(3)}
    assert "not supported" in words(axes.figure)
    (axes,) = draw_map("patchy").axes
    assert at(axes, "failed") == {(1, 1, 1, 1), (2, 0, 1, 1), (3, 1, 1, 2), (4, 0, 1, 1)}
    assert {"not finite", "failed", "out of memory", "text too short"} <= set(words(axes.figure))
    line = "no finite loss at 256; failed at 512; out of memory at 1024; text too short for 2048"
    assert " ".join(words(axes.figure)).find(line) > 0


def test_a_reason_is_turned_or_broken_to_fit_its_block():
    assert tiles.reason("out of memory", 2.0, 0.3) == ("out of memory", 0)
    assert tiles.reason("out of memory", 0.2, 1.2) == ("out of memory", 90)
    assert tiles.reason("not finite", 0.4, 0.4) == ("not\nfinite", 0)
    assert tiles.reason("out of memory", 0.2, 0.2) == ("×", 0)


def marks(axes):
    return [line.get_xdata()[0] for line in axes.get_lines() if line.get_label() == "trained"]


def test_the_training_length_stands_between_the_columns():
    assert marks(draw_map("window").axes[0]) == [1.5]  # 256 is the second of 128, 256, 512 ...
    assert marks(draw_map("outside").axes[0]) == []
    assert "Trained at 8192, outside the lengths shown." in words(draw_map("outside"))
    assert [marks(axes) for axes in draw_map("other lengths").axes] == [[1.5], [2.5]]
    (found,) = search.read(pd.DataFrame(window(train_length=300)))
    assert tiles.trained_at(found) == 1.5


def test_positions_run_from_start_to_end_whatever_their_order():
    shuffled = window(positions=ELEVEN)[::-1]
    (found,) = search.read(pd.DataFrame(shuffled))
    assert found.positions == ELEVEN
    (found,) = search.read(
        pd.DataFrame([r for r in window() if r["position"] != "middle"] + window(positions=("50%",)))
    )
    assert found.positions == ("start", "50%", "end")
    (axes,) = draw_map("eleven depths").axes
    assert [t.get_text() for t in axes.get_yticklabels()] == list(ELEVEN)
    assert "n=20" not in words(axes.figure)  # no room; the subtitle says it
    assert any("20 trials a cell" in w for w in words(axes.figure))


FINDINGS = {
    "perfect": "perfect: retrieves everywhere, up to 2048",
    "window": "ALiBi: retrieves within 256, beyond only towards the end",
    "breaker": "RoPE: retrieves within 256, nothing beyond",
    "chance": "NoPE: no better than guessing",
    "learned": "learned: retrieves everywhere, up to 256",
    "patchy": "patchy: retrieves wherever measured, up to 2048; 70 % right",
    "two": "1 of 2 models find the fact beyond the 256 tokens of training",
    "six": "3 of 6 models find the fact beyond the 256 tokens of training",
    "other lengths": "Retrieval by position and length",
}


@pytest.mark.parametrize("name", FINDINGS)
def test_the_headline_is_the_finding(name):
    assert title(draw_map(name)) == FINDINGS[name]


def label(hits, **more):
    (found,) = search.read(pd.DataFrame(needle("m", "rope", hits, **more)))
    return reach.label(found)


def test_findings_name_lengths_and_positions():
    three = {"lengths": [128, 256, 1024]}
    # The planted window of 300 tokens: 1, 1, 1 at 256 and 0, 0, 1 at 1024.
    assert (
        label(lambda n, d: 20 if n <= 256 or d == 1 else 0, **three) == "retrieves within 256, beyond at the end only"
    )
    assert label(lambda n, d: 20 if d == 1 else 0) == "finds it at the end only"
    assert label(lambda n, d: 20 if d == 1 and n <= 512 else 0) == "finds it at the end only, up to 512"
    assert label(lambda n, d: 20 if d == 0.5 else 0) == "finds it in the middle only"
    assert label(lambda n, d: 20 if d != 0.5 else 0) == "finds it not in the middle"
    assert label(lambda n, d: 20 if d >= 0.7 else 0, positions=ELEVEN) == "finds it from 70% on only"
    assert label(lambda n, d: 20 if d <= 0.2 else 0, positions=ELEVEN) == "finds it up to 20% only"
    assert label(lambda n, d: 20 if (n > 256) == (d == 0) else 0) == "retrieves in 7 of 15 cells"
    assert (
        label(lambda n, d: 20 if (n > 256) == (d == 0) and n < 1024 else 0)
        == "retrieves in 5 of 15 cells, none beyond 512"
    )
    assert label(lambda n, d: 9) == "retrieves everywhere, up to 2048; 45 % right"
    assert label(lambda n, d: 20, lengths=[512]) == "retrieves everywhere"
    assert label(lambda n, d: "oom") == "out of memory from 128 on"


def test_a_gain_is_claimed_only_where_its_interval_leaves_out_zero():
    def told(gain, **more):
        (found,) = search.read(pd.DataFrame(needle("m", "rope", lambda n, d: 0, gain=gain, **more)))
        return reach.gain(found)

    assert told(lambda n, d: 0.29) == "evidence has no measurable effect"  # half width 0.3
    assert told(lambda n, d: 0.31) == "evidence helps everywhere, up to 2048"
    assert told(lambda n, d: 2.0 if n <= 256 else 0.0) == "evidence helps within 256, nothing beyond"
    assert (
        told(lambda n, d: 2.0 if n <= 256 else -0.4)
        == "evidence helps within 256, nothing beyond; hurts in 9 of 15 cells"
    )
    assert told(lambda n, d: -0.4 if d == 0 else 0.0) == "hurts in 5 of 15 cells; helps in none"


def test_the_gain_map_prints_signed_nats_and_hatches_what_may_be_zero():
    (axes,) = draw_gain("small").axes
    assert at(axes, "hatched") == {(c, r) for c in range(5) for r in (0, 1)}
    assert printed(axes)[0, 2][0] == "+0.90" and printed(axes)[4, 0][0] == "+0.02"
    assert title(axes.figure) == "tiny [RoPE]: evidence helps at the end only"
    assert {"−0.8", "+0.8 nats", "95 % interval includes 0"} <= set(words(axes.figure))
    (axes,) = draw_gain("breaker").axes
    assert printed(axes)[0, 0][0] == "+5.0" and printed(axes)[4, 0][0] == "−0.40"
    assert at(axes, "hatched") == set()


def test_a_few_huge_gains_do_not_bleach_the_map():
    rows = needle("m", "rope", lambda n, d: 0, gain=lambda n, d: 400.0 if (n, d) == (128, 0) else 0.8, positions=ELEVEN)
    found = search.read(pd.DataFrame(rows))
    assert shade.gain(found).limit == 0.8
    assert "Values beyond 0.8 have the last shade." in words(retrieval_gain.draw({"needle": pd.DataFrame(rows)}))


def test_models_without_a_gain_are_named_and_not_drawn():
    figure = draw_gain("both modes")
    assert len(figure.axes) == 1
    assert any(w == "Not shown: chat · generate: no gain in the table." for w in words(figure))
    assert title(draw_gain("generate")).endswith("no value to draw")


def test_tasks_and_modes_are_told_apart():
    figure = draw_map("twelve, two tasks")
    assert len(figure.axes) == 24
    assert title(figure) == "7 of 12 models find the fact beyond the 256 tokens of training"
    assert (
        title(retrieval.draw({"needle": pd.DataFrame(tasks(window(), "a", "b"))}))
        == "ALiBi: retrieval by position and length"
    )
    assert {"a-rather-long-model-name-0 · recall", "a-rather-long-model-name-0 · passkey"} <= set(words(figure))
    found = search.read(pd.DataFrame(TABLES["both modes"]()))
    assert [s.name for s in found] == ["chat · score", "chat · generate"]
    assert any("up to 35 points more" in w for w in words(draw_map("generate")))
    two = [{**r, "task_version": v} for r in window() for v in (1, 2)]
    assert [s.name for s in search.read(pd.DataFrame(two))] == ["ALiBi · version 1", "ALiBi · version 2"]


def curves(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_curves_by_position_are_the_rates_and_their_intervals():
    (axes,) = draw_positions("window").axes
    drawn = curves(axes)
    assert list(drawn["start"].get_ydata()) == [1, 1, 0, 0, 0]
    assert list(drawn["middle"].get_ydata()) == [1, 1, 1, 0, 0]
    assert list(drawn["end"].get_ydata()) == [1, 1, 1, 1, 1]
    np.testing.assert_allclose(drawn["end"].get_xdata(), LENGTHS, rtol=0.05)  # side by side, not on each other
    assert (drawn["start"].get_xdata() < drawn["end"].get_xdata()).all()
    np.testing.assert_allclose(drawn["absent_exact_rate"].get_ydata(), [0.05] * 5)
    assert list(drawn["oracle_exact_rate"].get_ydata()) == [1.0] * 5
    low, high = wilson(0, 20)
    spans = {tuple(path.vertices[:, 1]) for c in axes.collections for path in c.get_paths()}
    assert (low, high) in spans and wilson(20, 20) in spans
    assert list(drawn["start, like guessing"].get_ydata()) == [0, 0, 0]
    assert list(drawn["start, found"].get_ydata()) == [1, 1]
    assert drawn["start, like guessing"].get_markerfacecolor() == "white"
    assert {"start", "middle", "end"} <= set(words(axes.figure))


def test_of_many_positions_three_are_drawn_and_failed_lengths_crossed():
    figure = draw_positions("eleven depths")
    assert {"0%", "50%", "100%"} <= set(words(figure)) and "10%" not in words(figure)
    assert "Drawn are 3 of 11 positions; the map of cells has them all." in words(figure)
    (axes,) = draw_positions("learned").axes
    assert list(curves(axes)["failed"].get_xdata()) == [512, 1024, 2048]
    assert "Not shown: a-rather-long-model-name-8: unsupported from 128 on." in words(draw_positions("twelve"))


def couples(name):
    sweep, rows = CONTRASTS[name]()
    return {p.name: p for p in pairs.read(pd.DataFrame(sweep), pd.DataFrame(rows))}


def test_perplexity_is_a_multiple_of_that_at_the_training_length():
    lower, upper = draw_contrast("one").axes
    assert list(curves(upper)["perplexity"].get_xdata()) == [256, 512, 1024, 2048, 4096]
    np.testing.assert_allclose(curves(upper)["perplexity"].get_ydata(), np.array(FLAT) / 4.0)
    np.testing.assert_allclose(curves(lower)["found"].get_ydata(), [1, 1, 2 / 3, 1 / 3, 1 / 3])
    assert lower.get_xlim() == upper.get_xlim()
    assert "at 2048: 0.99×, 33 % found" in words(upper.figure)
    (found,) = couples("other lengths").values()
    assert found.reference == 256 and found.beyond == []


def test_contrast_says_what_holds_and_what_is_gone():
    assert {p.name: p.finding() for p in couples("family").values()} == {
        "NoPE": "perplexity breaks, retrieves nothing",
        "learned": "no positions beyond 256",
        "RoPE": "perplexity breaks, retrieval gone",
        "T5 bias": "perplexity rises, retrieval gone beyond 1024",
        "ALiBi": "perplexity flat, retrieval at the end only",
    }
    assert title(draw_contrast("family")) == "ALiBi: perplexity stays flat, yet facts are lost"
    gone = {
        "ppl": pd.DataFrame(SWEEP),
        "needle": pd.DataFrame(breaker("reference:alibi", "alibi") + perfect("reference:rope", "rope")),
    }
    assert title(contrast.draw(gone)) == "ALiBi: perplexity stays flat, retrieval is gone"
    assert (
        title(contrast.draw({"ppl": pd.DataFrame(SWEEP), "needle": pd.DataFrame(breaker())}))
        == "RoPE: perplexity breaks, retrieval gone"
    )
    assert couples("beyond none")["ALiBi"].finding() == "no length beyond 256 has both"
    assert couples("infinite")["ALiBi"].finding() == "perplexity breaks, retrieval at the end only"


def test_nothing_is_lost_that_was_not_there_before():
    at_the_end = needle("reference:alibi", "alibi", lambda n, d: 20 if d == 1 else 0)
    figure = contrast.draw({"ppl": pd.DataFrame(SWEEP), "needle": pd.DataFrame(at_the_end + breaker())})
    assert "perplexity flat, retrieval at the end only" in words(figure)
    assert title(figure) == "Perplexity and retrieval at the same lengths"


def test_a_pair_that_goes_no_further_says_why():
    (pair,) = pairs.read(pd.DataFrame(SWEEP), pd.DataFrame(dies("reference:alibi", "alibi")))
    assert (pair.finding(), pair.numbers()) == (
        "perplexity flat, retrieval holds",
        "at 1024: 0.99×, 85 % found; out of memory at 2048",
    )


def test_exploding_perplexity_leaves_the_view_with_an_arrow():
    figure = contrast.draw({"ppl": pd.DataFrame(SWEEP), "needle": pd.DataFrame(breaker())})
    upper = figure.axes[1]
    (x,) = curves(upper)["leaves"].get_xdata()
    assert 512 < x < 1024 and "Arrow: beyond 4×." in words(figure)  # 7.3 / 3.9 at 512, 20.9 / 3.9 at 1024
    assert "leaves" not in curves(draw_contrast("one").axes[1])


def test_a_model_without_a_sweep_is_named():
    figure = contrast.draw({"ppl": pd.DataFrame(SWEEP), "needle": pd.DataFrame(window() + perfect())})
    assert len(figure.axes) == 2 and "Not shown: perfect: no perplexity of it." in words(figure)


def test_a_row_holds_the_tasks_of_one_model():
    assert [sheet.columns(n, models) for n, models in ((1, 1), (2, 2), (4, 4), (6, 6), (12, 12), (3, 1))] == [
        1,
        2,
        2,
        3,
        3,
        3,
    ]
    assert [sheet.columns(n, models) for n, models in ((10, 5), (12, 4), (8, 2), (12, 2), (10, 2))] == [2, 3, 2, 3, 3]
    assert sheet.columns(8, 2, most=4) == 4


def test_words_are_wrapped_and_the_last_line_is_shortened():
    lines = sheet.wrap("perplexity rises and retrieval is gone beyond the length of training", 1.5, 7.0, 2)
    assert len(lines) == 2 and lines[1].endswith("…") and all(style.extent(w, 7.0)[0] <= 1.5 for w in lines)
    assert sheet.wrap("one\ntwo words", 1.5, 7.0, 2) == ["one", "two words"] and sheet.wrap("", 1.5, 7.0, 2) == []


def test_rates_of_positions_are_weighted_by_their_trials():
    rows = window(lengths=[256], positions=("start",)) + needle(
        "reference:alibi", "alibi", lambda n, d: 0, [256], ("end",), n=60
    )
    (pair,) = pairs.read(pd.DataFrame(SWEEP), pd.DataFrame(rows))
    assert (pair.rates[256.0].mean, pair.rates[256.0].low, pair.rates[256.0].high) == (0.25, 0.0, 1.0)
