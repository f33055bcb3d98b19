"""Figures say what their tables say: data of the lines, words for what is cut off, nothing written over anything."""

import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from lengthbench.errors import UserError
from lengthbench.plots import contexts, labels, perplexity, positions, series, style, ticks
from lengthbench.plots.save import save
from lengthbench.plots.series import Key

LENGTHS = [256, 512, 1024, 2048, 4096, 8192]
FAMILY = {
    "none": [4.0, 4.6, 7.1, 12.2, 19.5, 27.0],
    "learned": [4.05, None, None, None, None, None],
    "sinusoidal": [4.0, 40, 300, 1250, 3900, 8200],
    "rope": [3.9, 4.7, 7.7, 13, 21, 30],
    "t5": [4.1, 4.08, 4.09, 4.11, 4.15, 4.22],
    "alibi": [4.2, 4.17, 4.15, 4.14, 4.14, 4.13],
}


def row(model, scheme, length, ppl, **more):
    """A row of ppl.csv. ppl None: no numbers."""
    nll = None if ppl is None else 800.0 if math.isinf(ppl) else math.log(ppl)
    have = ppl is not None
    bytes_a_token = more.pop("bytes_a_token", 1)
    return {
        "model": model, "scheme": scheme, "scheme_params": "", "protocol": "nonoverlapping", "length": length,
        "train_length": 256, "n_scored": 49152 if have else None, "nll": nll, "ppl": ppl,
        "bits_per_byte": nll / math.log(2) / bytes_a_token if have else None,
        "ci_low": nll - 0.02 if have else None, "ci_high": nll + 0.03 if have else None,
        "dtype": "float32", "tokenizer": "bytes", "data": "novels",
        "status": "ok" if have else "unsupported", "detail": "", **more,
    }  # fmt: skip


def family(*protocols):
    return pd.DataFrame(
        row(f"reference:{s}", s, n, p if p is None or protocol == "nonoverlapping" else 0.94 * p, protocol=protocol)
        for s, values in FAMILY.items()
        for protocol in protocols or ("nonoverlapping",)
        for n, p in zip(LENGTHS, values, strict=True)
    )


def smollm2():
    values = zip([8192, 10240, 12288, 16384], [22.3, 22.5, 47, 1528], strict=True)
    return pd.DataFrame(row("smollm2", "rope", n, p, train_length=8192, dtype="bfloat16") for n, p in values)


def many(n_models):
    """Flat, rising, exploding and falling models with long names and two training lengths; the eighth runs out."""
    return pd.DataFrame(
        row(
            f"org{i}/a-rather-long-model-name-{i}", ["rope", "alibi", "mamba"][i % 3], n,
            None if i == 7 and k > 1 else (3.5 + 0.3 * i) * math.exp([0, 0.1, 0.9, -0.02][i % 4] * k**1.3),
            train_length=[256, 512][i % 2], status="oom" if i == 7 and k > 1 else "ok",
        )
        for i in range(n_models)
        for k, n in enumerate(LENGTHS)
    )  # fmt: skip


def tokenizers():
    models = [
        ("hf/gpt2", "learned", 1024, "gpt2", 4.4, [31, 28, 26.5, None, None, None]),
        ("hf/SmolLM2-135M", "rope", 2048, "smollm2", 4.3, [24, 22, 20.5, 19.8, 60, 900]),
        ("reference:alibi", "alibi", 256, "bytes", 1, FAMILY["alibi"]),
    ]
    return pd.DataFrame(
        row(m, s, n, p, train_length=t, tokenizer=name, bytes_a_token=b)
        for m, s, t, name, b, values in models
        for n, p in zip(LENGTHS, values, strict=True)
    )


def hard():
    """A gap, infinities, too little text, and a name with a formula, a line break and letters no font may have."""
    table = family()
    gap = (table["model"] == "reference:rope") & (table["length"] == 4096)
    table.loc[gap, ["nll", "ppl", "ci_low", "ci_high"]] = np.nan
    table.loc[gap, "status"] = "oom"
    over = (table["model"] == "reference:none") & (table["length"] >= 4096)
    table.loc[over, ["nll", "ppl"]] = [800.0, math.inf]
    odd = [row("dir/成$x^$\nfin", "rope", n, 5 + n / 1000, train_length=512) for n in LENGTHS[:-1]]
    short = [row("dir/成$x^$\nfin", "rope", 8192, None, train_length=512, status="too_short")]
    return pd.concat([table, pd.DataFrame(odd + short)])


def nothing():
    statuses = ["oom", "error", "nonfinite", "unsupported", "too_short", "ok"]
    return pd.DataFrame(
        row(f"reference:{s}", s, n, None, status=status)
        for s in FAMILY
        for n, status in zip(LENGTHS, statuses, strict=True)
    )


def steps():
    name = "models/a very long model name that goes on and on for ever and ever.gguf"
    return pd.DataFrame(
        row(name, "rope", n, 9 + max(0, n - 4096) ** 2 / 2e6, train_length=4096) for n in range(512, 8193, 512)
    )


def overrides():
    schemes = [("rope", ""), ("yarn", '{"factor": 4, "original": 256}'), ("yarn", '{"factor": 8, "original": 256}')]
    return pd.DataFrame(
        row("reference:rope", s, n, 3.9 + (i + 1) * k, scheme_params=p)
        for i, (s, p) in enumerate(schemes)
        for k, n in enumerate(LENGTHS)
    )


def by_context(schemes=tuple(FAMILY), trained=256, lengths=LENGTHS):
    """positions.csv: loss 1.36 + 1.9 c^-0.45 at context c; beyond training some rise with every doubling."""
    rise = {"none": 0.5, "rope": 0.65, "sinusoidal": 1.9}
    rows = []
    for scheme, length in itertools.product(schemes, lengths):
        low, high = 1, 1
        while high <= length and (scheme != "learned" or length <= trained):
            context = math.sqrt(low * high)
            nll = 1.36 + 1.9 * context**-0.45 + rise.get(scheme, 0) * max(0, math.log2(context / trained))
            rows.append({
                "model": f"reference:{scheme}", "scheme": scheme, "scheme_params": "", "protocol": "nonoverlapping",
                "length": length, "context_from": low, "context_to": high, "train_length": trained, "n_scored": 100,
                "nll_sum": 100 * nll, "nll": nll, "ci_low": nll - 0.05, "ci_high": nll + 0.05, "status": "ok",
                "detail": "",
            })  # fmt: skip
            low, high = high + 1, max(2, 2 * high)
    return pd.DataFrame(rows)


TABLES = {
    "family": family(),
    "both protocols": family("nonoverlapping", "sliding"),
    "one model": smollm2(),
    "ten models": many(10),
    "fourteen models": many(14),
    "tokenizers": tokenizers(),
    "hard": hard(),
    "nothing": nothing(),
    "steps": steps(),
    "overrides": overrides(),
    "one length": family().query("length == 512"),
    "one row": family().iloc[[0]],
    "one failed row": family().query("model == 'reference:learned' and length == 512"),
    "all explode": family().query("model == 'reference:sinusoidal'"),
    "no rows": family().iloc[:0],
    "no columns": pd.DataFrame(),
}
CONTEXTS = {
    "family": by_context(),
    "one model": by_context(["rope"], 8192, [8192, 16384]),
    "steps": by_context(["rope", "alibi"], 256, list(range(256, 8193, 256))),
    "context 0": by_context(["alibi"]).assign(context_from=lambda t: t["context_from"].where(t["context_to"] > 1, 0)),
    "one row": by_context().iloc[[0]],
    "nan": by_context().assign(nll=np.nan),
    "infinite": by_context(["rope"]).assign(nll=lambda t: t["nll"].where(t["context_to"] < 1000, np.inf)),
    "no rows": by_context().iloc[:0],
    "no columns": pd.DataFrame(),
}
FIGURES = [(perplexity, "ppl", name) for name in TABLES] + [(positions, "positions", name) for name in CONTEXTS]


def draw(module, table: str, name: str) -> Figure:
    return module.draw({table: (TABLES if table == "ppl" else CONTEXTS)[name]})


def words(figure: Figure) -> list[str]:
    return [t.get_text() for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]


def lines_of(figure: Figure, label: str):
    return [line for axes in figure.axes for line in axes.get_lines() if line.get_label() == label]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("module", "table", "name"), FIGURES)
def test_no_words_lie_on_others_or_leave_the_figure(module, table, name, tmp_path):
    figure = draw(module, table, name)
    save(figure, tmp_path, "figure")  # no warning from there either
    with style.look():
        figure.canvas.draw()
    shown = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    with style.look():
        boxes = {t: t.get_window_extent() for t in shown}
    page = figure.bbox
    # Ticks outside the limits of an axis are never painted.
    inside = {t: b for t, b in boxes.items() if not (t.axes and not _near(t.axes.get_window_extent(), b))}
    assert len(inside) >= 2
    for text, box in inside.items():
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1, text.get_text()
    for (a, box), (b, other) in itertools.combinations(inside.items(), 2):
        apart = box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1 or box.y1 <= other.y0 + 3 or other.y1 <= box.y0 + 3
        assert apart, f"{a.get_text()!r} on {b.get_text()!r}"


def _near(axes_box, box) -> bool:
    return (
        axes_box.x0 - 100 <= box.x1 and box.x0 <= axes_box.x1 + 30
        and axes_box.y0 - 100 <= box.y1 and box.y0 <= axes_box.y1 + 30
    )  # fmt: skip


@pytest.mark.parametrize("scheme", FAMILY)
def test_a_line_is_its_rows(scheme):
    (line,) = lines_of(perplexity.draw({"ppl": family()}), f"{series.NICE[scheme]}/nonoverlapping")
    assert list(line.get_xdata()) == LENGTHS
    wanted = [math.nan if v is None else v for v in FAMILY[scheme]]
    np.testing.assert_array_equal(line.get_ydata(), wanted)


def test_the_order_of_rows_does_not_matter_and_the_table_is_left_alone():
    table = family().sample(frac=1, random_state=3)
    before = table.copy(deep=True)
    (line,) = lines_of(perplexity.draw({"ppl": table}), "RoPE/nonoverlapping")
    assert list(line.get_ydata()) == FAMILY["rope"]
    pd.testing.assert_frame_equal(table, before)


def test_the_band_is_the_exp_of_the_interval_of_nll():
    figure = perplexity.draw({"ppl": smollm2()})
    (band,) = figure.axes[0].collections
    corners = {(round(x), round(y, 3)) for x, y in band.get_paths()[0].vertices}
    # 22.3 exp(-0.02) and 22.3 exp(0.03)
    assert {(8192, 21.858), (8192, 22.979)} <= corners


def test_an_exploding_line_leaves_at_the_top_and_says_how_far_it_goes():
    figure = perplexity.draw({"ppl": smollm2()})
    assert 47 < figure.axes[0].get_ylim()[1] < 100
    assert "SmolLM2: 1,528 at 16384" in words(figure)
    figure = perplexity.draw({"ppl": family()})
    assert 40 < figure.axes[0].get_ylim()[1] < 100
    assert "sinusoidal: 300 at 1024, 8,200 at 8192" in words(figure)
    assert not {"sinusoidal", "learned"} & set(words(figure))
    assert {"NoPE", "RoPE", "T5 bias", "ALiBi"} <= set(words(figure))


def test_a_steadily_worse_model_is_no_explosion():
    worse = pd.DataFrame(row("hf/worse", "rope", n, 70.0) for n in LENGTHS)
    figure = perplexity.draw({"ppl": pd.concat([family().query("scheme == 'alibi'"), worse])})
    assert figure.axes[0].get_ylim()[1] > 70
    assert "worse" in words(figure)


def test_both_protocols_of_a_clipped_model_are_told():
    assert "sinusoidal, sliding: 282 at 1024, 7,708 at 8192" in words(draw(perplexity, "ppl", "both protocols"))


def test_lengths_without_positions_end_the_line_in_a_cross():
    figure = perplexity.draw({"ppl": family()})
    assert "learned: no positions beyond 256" in words(figure)
    crosses = [line for line in figure.axes[0].get_lines() if line.get_marker() == "x"]
    assert [(list(c.get_xdata()), list(c.get_ydata())) for c in crosses] == [([256], [4.05])]


def test_a_limit_that_the_rows_do_not_bear_out_is_not_claimed():
    rows = [row("hf/odd", "learned", n, p, train_length=256) for n, p in zip(LENGTHS[:3], [4, 5, None], strict=True)]
    figure = perplexity.draw({"ppl": pd.DataFrame(rows)})
    assert "odd: unsupported at 1024" in words(figure)


def test_gaps_infinities_and_short_text_are_told():
    shown = words(draw(perplexity, "ppl", "hard"))
    assert {"RoPE: out of memory at 4096", "NoPE: infinite from 4096 on", "RoPE"} <= set(shown)
    assert "The text is too short for 8192." in shown
    assert "成$x^$ fin" in shown


def test_a_model_without_any_value_is_named_at_the_foot():
    shown = words(draw(perplexity, "ppl", "one length"))
    assert "Not shown: learned: no positions beyond 256." in shown
    assert "Perplexity of 6 models at length 512" in shown


def test_nothing_to_draw_says_why():
    shown = words(draw(perplexity, "ppl", "nothing"))
    assert "Perplexity against length: no value to draw" in shown
    assert "NoPE: out of memory at 256; failed at 512; no finite loss at 1024; unsupported at 2048" in shown


def test_one_training_length_is_a_line_and_several_are_bars():
    axes = perplexity.draw({"ppl": family()}).axes[0]
    assert [list(v.get_xdata()) for v in axes.get_lines() if list(v.get_ydata()) == [0, 1]] == [[256, 256]]
    assert "trained at 256" in words(axes.figure)
    axes = draw(perplexity, "ppl", "tokenizers").axes[0]
    bars = {
        (line.get_xdata()[0], round(line.get_ydata()[0], 4)) for line in axes.get_lines() if line.get_marker() == "|"
    }
    # log2(26.5) / 4.4, log2(19.8) / 4.3, log2(4.2)
    assert bars == {(1024, 1.0745), (2048, 1.0017), (256, 2.0704)}
    assert "Bars on the lines mark each model's training length." in words(axes.figure)


def test_a_bar_between_two_lengths_lies_on_the_drawn_line():
    rows = [row(f"hf/m{t}", "rope", n, p, train_length=t) for t in (512, 256) for n, p in ((256, 4.0), (1024, 16.0))]
    axes = perplexity.draw({"ppl": pd.DataFrame(rows)}).axes[0]
    bars = {line.get_xdata()[0]: line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() == "|"}
    assert bars[512] == pytest.approx(8.0)  # half way on both log axes


def test_several_tokenizers_share_bits_per_byte():
    figure = draw(perplexity, "ppl", "tokenizers")
    assert figure.axes[0].get_ylabel() == "bits per byte" and figure.axes[0].get_yscale() == "linear"
    (line,) = lines_of(figure, "SmolLM2-135M/nonoverlapping")
    np.testing.assert_allclose(line.get_ydata(), np.log2([24, 22, 20.5, 19.8, 60, 900]) / 4.3)
    assert any("several tokenizers, so per byte" in w for w in words(figure))


def test_protocols_differ_by_dashes_and_have_a_key():
    figure = draw(perplexity, "ppl", "both protocols")
    (solid,), (dashed,) = (lines_of(figure, f"ALiBi/{p}") for p in ("nonoverlapping", "sliding"))
    assert solid.get_color() == dashed.get_color()
    assert solid.get_linestyle() == "-" and dashed.get_linestyle() == "--"
    assert {"nonoverlapping", "sliding"} <= set(words(figure))
    assert words(figure).count("ALiBi") == 1


def test_many_models_get_a_panel_each_with_the_others_in_grey():
    figure = draw(perplexity, "ppl", "fourteen models")
    assert len(figure.axes) == 14
    for i, axes in enumerate(figure.axes):
        colored = [
            line for line in axes.get_lines()
            if str(line.get_label()).endswith("/nonoverlapping") and to_hex(line.get_color()) != style.MUTED
        ]  # fmt: skip
        assert len(colored) == 1 and colored[0].get_ydata()[0] == pytest.approx(3.5 + 0.3 * i)
    assert "out of memory from 1024 on" in words(figure)


def test_headline_names_text_targets_and_number_format():
    shown = words(perplexity.draw({"ppl": smollm2()}))
    assert "Perplexity of SmolLM2 within and beyond the 8192 tokens of training" in shown
    assert "novels · 49,152 targets · bfloat16 · nonoverlapping windows · shaded: 95 % interval" in shown


def test_a_scheme_keeps_its_colour_in_any_company():
    alone = lines_of(perplexity.draw({"ppl": family().query("scheme == 'alibi'")}), "ALiBi/nonoverlapping")[0]
    among = lines_of(draw(perplexity, "ppl", "family"), "ALiBi/nonoverlapping")[0]
    assert alone.get_color() == among.get_color() == "#0072B2"
    keys = [Key("hf/a", "rope", ""), Key("hf/b", "rope", ""), Key("reference:rope", "rope", ""), Key("c", "mamba", "")]
    found = series.inks(keys)
    assert found[keys[2]] == style.SCHEMES["rope"]
    assert len({(ink.color, ink.marker) for ink in found.values()}) == 4
    assert found == series.inks(keys)


def test_names_are_short_and_all_different():
    keys = [
        Key("reference:alibi", "alibi", ""),
        Key("reference:rope", "yarn", json.dumps({"factor": 4, "original": 256})),
        Key("reference:rope", "yarn", json.dumps({"factor": 8, "original": 256})),
        Key("EleutherAI/pythia-70m@main", "rope", ""),
        Key("runs/a/final", "rope", ""),
        Key("runs/b/final", "rope", ""),
        Key("C:\\models\\tiny.gguf", "rope", ""),
        Key("smollm2", "rope", ""),
        Key("gpt2", "learned", ""),
        Key("gpt2", "none", ""),
        Key("ALiBi", "unknown", ""),
    ]
    assert list(series.names(keys).values()) == [
        "reference:alibi [alibi]", "RoPE [yarn factor=4]", "RoPE [yarn factor=8]", "pythia-70m@main", "a/final", "b/final", "tiny",
        "SmolLM2", "gpt2 [learned]", "gpt2 [NoPE]", "ALiBi [unknown]",
    ]  # fmt: skip
    twins = [Key(f"x/{'a' * 40}{i}{'b' * 40}", "rope", "") for i in range(3)]
    assert len(set(series.names(twins).values())) == 3
    assert series.names(keys[:1]) == {keys[0]: "ALiBi"}


def test_labels_are_pushed_apart_as_little_as_possible():
    assert labels.spread([1.0, 1.1], 0.3, 0, 10) == pytest.approx([0.9, 1.2])
    assert labels.spread([1.1, 1.0, 5.0], 0.3, 0, 10) == pytest.approx([1.2, 0.9, 5.0])
    assert labels.spread([0.0, 0.0, 0.0], 1, 0, 10) == pytest.approx([0, 1, 2])
    assert labels.spread([9.9, 10.0], 1, 0, 10) == pytest.approx([9, 10])
    assert labels.spread([5.0] * 5, 1, 0, 2) == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert labels.spread([], 1, 0, 2) == []


def test_labels_above_the_edge_stack_in_rows():
    # The left one would run into the right one, so it goes up; far apart, both stay down.
    assert labels.pack([1.0, 2.0], [1.5, 1.0], 9, 0.1) == [(1.0, 1), (2.0, 0)]
    assert labels.pack([1.0, 5.0], [1.5, 1.0], 9, 0.1) == [(1.0, 0), (5.0, 0)]
    assert labels.pack([8.5], [1.0], 9, 0.1) == [(8.0, 0)]
    rows = labels.pack([8.2, 8.4, 8.6, 8.6], [3.0] * 4, 9, 0.1)
    assert sorted(row for _, row in rows) == [0, 1, 2, 3]


def test_a_label_inside_the_axes_avoids_lines_and_other_labels():
    level = np.column_stack([np.linspace(0, 6, 600), np.full(600, 2.0)])
    rising = np.column_stack([np.linspace(1, 3, 600), np.linspace(2, 4, 600)])
    lines, inside, taken = np.concatenate([level, rising]), labels.Box(0, 0, 6, 4), []
    for _ in range(3):
        box = labels.free_spot((1.0, 2.0), (1.8, 0.12), inside, lines, taken)
        assert box.count(lines) == 0 and not any(box.overlaps(other) for other in taken)
        assert box.left >= 0 and box.right <= 6 and box.bottom >= 0 and box.top <= 4
        taken.append(box)


def test_ticks_are_plain_numbers():
    assert ticks.log_ticks(3.7, 48) == [5, 10, 20, 30]
    assert ticks.log_ticks(0.9, 2e4) == [1, 10, 100, 1000, 10000]
    assert ticks.log_ticks(3.87, 4.33) == pytest.approx([3.9, 4.0, 4.1, 4.2, 4.3])
    assert [ticks.plain(v) for v in (4, 4.25, 1000, 2e8)] == ["4", "4.25", "1,000", "2e8"]
    assert [ticks.alike([3.9, 4, 4.1])(v, None) for v in (3.9, 4)] == ["3.9", "4.0"]
    assert [style.number(v) for v in (3.923, 41.27, 300, 1528.4, 2.44e12, math.inf)] == [
        "3.92", "41.3", "300", "1,528", "2.4e12", "infinite",
    ]  # fmt: skip
    figure = draw(perplexity, "ppl", "family")
    figure.canvas.draw()
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == [str(n) for n in LENGTHS]


def test_context_lines_lie_at_the_geometric_middles():
    figure = draw(positions, "positions", "family")
    assert len(figure.axes) == 6
    rope = figure.axes[3]
    drawn = {line.get_label(): line for line in rope.get_lines() if str(line.get_label()).isdigit()}
    assert list(drawn) == [str(n) for n in LENGTHS]
    middles = [1, 2, 12**0.5, 40**0.5, 144**0.5, 544**0.5, 2112**0.5, 8320**0.5, 33024**0.5]
    np.testing.assert_allclose(drawn["256"].get_xdata(), middles)
    np.testing.assert_allclose(drawn["256"].get_ydata(), [1.36 + 1.9 * c**-0.45 for c in middles])
    shades = [np.dot(matplotlib.colors.to_rgb(line.get_color()), [0.3, 0.59, 0.11]) for line in drawn.values()]
    assert shades == sorted(shades, reverse=True)


def test_context_beyond_training_and_early_tokens_are_marked():
    figure = positions.draw({"positions": by_context(), "ppl": family()})
    for axes in figure.axes:
        assert axes.patches[0].get_x() == 256
        assert axes.get_ylim() == figure.axes[0].get_ylim()
    shown = words(figure)
    assert "no positions beyond 256" in shown
    assert "Grey ground: contexts beyond the 256 tokens of training." in shown
    assert "novels · 49,152 targets · float32 · nonoverlapping windows · band: 95 % interval" in shown
    # At 129-256 the loss is 1.5361; 1.1 times that is 1.6897. 33-64 costs 1.6988, 65-128 costs 1.6054.
    assert contexts.early(series.read(by_context(["alibi"]))[0]) == 64


def test_a_model_that_breaks_is_cut_and_told():
    figure = draw(positions, "positions", "family")
    # Training ends at 3.26 for a context of 1. Sinusoidal at 4097-8192: 1.36 + 1.9 * 5793.3^-0.45 + 1.9 * 4.5
    assert 3.4 < figure.axes[0].get_ylim()[1] < 5
    assert "↑ 9.95 at 4097 to 8192" in words(figure)


def test_only_nonoverlapping_contexts_are_drawn_where_there_are_some():
    table = by_context(["rope"])
    both = pd.concat([table.assign(protocol="sliding", nll=9.0), table])
    (line,) = lines_of(positions.draw({"positions": both}), "256")
    assert max(line.get_ydata()) < 4
    (line,) = lines_of(positions.draw({"positions": table.assign(protocol="sliding", nll=2.0)}), "256")
    assert set(line.get_ydata()) == {2.0}


@pytest.mark.parametrize(
    ("module", "table", "name"), [(perplexity, "ppl", "family"), (positions, "positions", "family")]
)
def test_saving_twice_gives_equal_files(module, table, name, tmp_path):
    first = save(draw(module, table, name), tmp_path / "a" / "plots", "figure")
    second = save(draw(module, table, name), tmp_path / "b", "figure")
    assert [p.name for p in first] == ["figure.png", "figure.svg"]
    assert first[0].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and b"<svg" in first[1].read_bytes()
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert b"<dc:date>" not in first[1].read_bytes()
    assert [p.name for p in (tmp_path / "b").iterdir() if p.suffix == ".part"] == []


SCRIPT = """
import hashlib, pathlib, sys, pandas
from lengthbench.plots import perplexity, positions
from lengthbench.plots.save import save
folder = pathlib.Path(sys.argv[1])
paths = save(perplexity.draw({"ppl": pandas.read_csv(folder / "ppl.csv")}), folder, "figure")
print(hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest())
print([m for m in ("torch", "matplotlib.pyplot") if m in sys.modules])
"""


def test_another_process_gives_the_same_files_without_torch_or_pyplot(tmp_path):
    family().to_csv(tmp_path / "ppl.csv", index=False)
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])}
        found.append(
            subprocess.run(
                [sys.executable, "-c", SCRIPT, str(tmp_path)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        )
    assert found[0] == found[1]
    assert found[0][1] == "[]"


def test_the_settings_of_the_user_neither_count_nor_change(tmp_path):
    plain = save(draw(perplexity, "ppl", "family"), tmp_path, "plain")
    with matplotlib.rc_context(
        {"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": "x", "savefig.bbox": "tight"}
    ):
        before = dict(matplotlib.rcParams)
        other = save(draw(perplexity, "ppl", "family"), tmp_path, "other")
        assert dict(matplotlib.rcParams) == before
    assert [p.read_bytes() for p in plain] == [p.read_bytes() for p in other]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "plots").write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*plots.*figure\.png"):
        save(draw(perplexity, "ppl", "no rows"), tmp_path / "plots", "figure")
