"""The page: what stands on it, what does not, that nothing on it runs, and that its tables sort."""

import csv
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lengthbench.errors import UserError
from lengthbench.report import caveats, cells, figures, page, tables
from lengthbench.report.runs import NEEDED, read

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NODE = shutil.which("node")
HOSTILE = "<script>alert('m')</script>"
VOID = {"meta", "link", "img", "br"}
PPL = {
    "model": "reference:alibi", "scheme": "alibi", "scheme_params": "", "protocol": "nonoverlapping", "length": "256",
    "stride": "256", "train_length": "256", "n_scored": "20480", "nll_sum": "28323.84", "nll": "1.3829295",
    "ppl": "3.98655", "bits_per_byte": "1.995", "ci_low": "1.3", "ci_high": "1.4", "n_clipped": "0", "n_blocks": "40",
    "bos": "none", "data": "own.txt", "dtype": "float32", "status": "ok", "detail": "",
}  # fmt: skip
GAIN = {
    "model": "m", "scheme": "rope", "scheme_params": "", "length": "512", "method": "cut", "base_length": "256",
    "stride": "64", "component": "total", "nll_from": "1.5", "nll_to": "1.25", "nats": "0.25", "nats_ci_low": "0.2",
    "nats_ci_high": "0.3", "n_blocks": "40", "reading": "uses far context", "verdict": "ppl falls", "data": "own.txt",
    "status": "ok", "detail": "",
}  # fmt: skip
TOKEN = {
    "model": "m", "scheme": "rope", "scheme_params": "", "length": "512", "base_length": "256", "rank": "1",
    "gain": "5.5", "cut_nll": "5", "swap_nll": "6", "full_nll": "0.5", "doc": "novel", "target": "700",
    "before": "she met ", "text": "Darcy", "after": " again",
}  # fmt: skip


def folder(path, manifest=(), **rows):
    """A run folder with these rows by table."""
    path.mkdir(parents=True)
    whole = {"settings": {}, "status": "complete", "sentence": "All is said.", **dict(manifest)}
    (path / "manifest.json").write_text(json.dumps(whole), "utf-8")
    for name, own in rows.items():
        with (path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(
                file, list(dict.fromkeys(k for row in own for k in row)), restval="", lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(own)
    return path


class Page(HTMLParser):
    """The elements of a page with their attributes and text, and its tables."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.tables, self.ids = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": ""}
        self.elements.append(element)
        self.ids += [element["attrs"]["id"]] if "id" in element["attrs"] else []
        if tag not in VOID:
            self.open.append(element)
        if tag == "table":
            self.tables.append({"heads": [], "rows": []})
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
        elif tag == "th":
            self.tables[-1]["heads"].append(element)
        elif tag == "td":
            self.tables[-1]["rows"][-1].append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, text):
        for element in self.open:
            element["text"] += text

    def all(self, tag):
        return [e for e in self.elements if e["tag"] == tag]

    def table(self, title):
        """Rows of the table whose caption starts so, as dicts of text by header."""
        captions = [e["text"] for e in self.all("caption")]
        own = self.tables[next(i for i, c in enumerate(captions) if c.startswith(title))]
        names = [head["text"] for head in own["heads"]]
        return [dict(zip(names, (c["text"] for c in row), strict=True)) for row in own["rows"][1:]]


def parse(*folders):
    return Page(page.html(read([str(f) for f in folders])))


def subjects(found):
    return [e["text"] for e in found.elements if e["attrs"].get("class") == "subject"]


def said(run):
    """Titles of the caveats of a run."""
    return [caveat.title for caveat in caveats.caveats(read([str(run)]))]


def test_a_real_run_becomes_one_file_that_needs_nothing_else(run, one_thread):
    oracle = "oracle:constant:nats=1,limit=512"
    assert run("ppl", "-m", oracle, "--lengths", "256..1024", "--max-tokens", "8192", "--out", "r").code == 0
    ran = run("report", "r")
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r"page: r/report\.html \(\d+ kB\)\n", ran.out)
    text = Path("r/report.html").read_text("utf-8")
    assert len(text.encode()) < 3_000_000
    found = Page(text)
    links = [
        v for e in found.elements for k, v in e["attrs"].items() if k in ("src", "href", "srcset", "action", "data")
    ]
    assert links and all(v.startswith(("data:", "#")) for v in links)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?://", re.sub('base64,[^"]*', "", text))
    assert found.ids == ["verdict", "sweep", "tables", "manifest", "caveats"]
    assert json.loads(Path("r/manifest.json").read_text("utf-8"))["sentence"] in text.replace("&gt;", ">")
    assert [e["attrs"]["alt"] for e in found.all("img")] == [
        f"{oracle}: perplexity 2.718 at 256, 2.718 at 512, unsupported at 1024",
        f"{oracle}, windows of 512: nats by tokens of context: 1.0000 with 1, 1.0000 with 257 to 512",
    ]
    rows = found.table("Perplexity by length")
    assert [(row["length"], row["ppl"], row["nll"], row["status"]) for row in rows] == [
        ("256", "2.718", "1.0000", "ok"), ("512", "2.718", "1.0000", "ok"), ("1024", "", "", "unsupported"),
    ]  # fmt: skip


def contrast(one, other):
    """Of two colours #rrggbb: WCAG 2.1, relative luminance and section 1.4.3."""
    lights = []
    for color in (one, other):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_words_can_be_read_on_light_dark_and_paper():
    style = (page.HERE / "page.css").read_text("utf-8")
    themes = [
        dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in re.findall(r":root {(.*?)}", style, re.DOTALL)
    ]
    assert len(themes) == 3 and contrast("#000000", "#ffffff") == pytest.approx(21)
    for colors in themes:
        words = [colors[name] for name in ("ink", "muted", "link", "fail", "ok")]
        assert min(contrast(word, colors[ground]) for word in words for ground in ("paper", "sheet")) >= 4.5
        assert contrast(colors["mark-ink"], colors["mark"]) >= 4.5


def test_retrieval_and_speed(tmp_path):
    cell = {
        "model": "m", "scheme": "rope", "scheme_params": "", "task": "passkey", "task_version": "1", "mode": "score", "length": "512",
        "position": "start", "depth": "0.0", "exact_rate": "0.85", "ci_low": "0.64", "ci_high": "0.95", "n_trials": "20",
        "absent_exact_rate": "0.0", "evidence_gain": "3.25", "gain_ci_low": "2.5", "gain_ci_high": "4", "status": "ok",
        "detail": "",
    }  # fmt: skip
    failed = {
        **dict.fromkeys(cell, ""),
        "model": "m",
        "scheme": "rope",
        "task": "passkey",
        "length": "1024",
        "position": "start",
        "status": "oom",
    }
    speed = {
        "model": "m",
        "scheme": "rope",
        "length": "512",
        "phase": "score",
        "tokens_per_second": "12345.6",
        "ratio": "0.97",
        "status": "ok",
    }
    run = folder(tmp_path / "r", needle=[cell, failed], speed=[speed])
    (run / "plots").mkdir()
    (run / "plots" / "retrieval.png").write_bytes(b"png")
    found = parse(run)
    (first, second) = found.table("Retrieval")
    assert (first["exact rate"], first["exact rate 95 %"]) == ("85.0 %", "[64.0 %, 95.0 %]")
    assert (first["evidence gain"], first["evidence gain 95 %"]) == ("+3.2500", "[+2.5000, +4.0000]")
    assert (second["exact rate"], second["status"]) == ("", "oom")
    assert found.all("img")[0]["attrs"]["alt"] == "m [rope]: exact 85.0 % at start of 512"
    assert [row["tokens/s"] for row in found.table("Speed")] == ["12,346"]


def test_published_perplexities(run):
    assert run("attribute", "--from", "press2022", "--out", "press").code == 0
    ran = run("report", "press", "--json")
    assert ran.code == 0 and json.loads(ran.out)["bytes"] == Path("press/report.html").stat().st_size
    found = Page(Path("press/report.html").read_text("utf-8"))
    assert subjects(found) == [
        "alibi trained at 1024 no interval",
        "alibi trained at 512 no interval",
    ]
    glance = found.table("Attribution at a glance")
    (row,) = [r for r in glance if r["model"] == "alibi trained at 512" and r["length"] == "3072"]
    # measurement: D = 0.0698, E = 0.0874, G = -0.0176 nats.
    assert (row["total"], row["early tokens"], row["beyond base"]) == ("+0.0698", "+0.0874", "−0.0176")
    assert said("press") == ["Published means"]


@pytest.mark.parametrize(
    ("column", "value", "text", "title"),
    [
        ("ppl", "3.9865512", "3.987", "3.9865512"),
        ("ppl", "1528.49", "1,528", "1528.49"),
        ("ppl", "2.4e12", "2.40e12", "2.4e12"),
        ("ppl", "inf", "∞", "inf"),
        ("nll", "1.38292950", "1.3829", "1.38292950"),
        ("nats", "-0.00519", "−0.0052", "-0.00519"),
        ("nats", "-5.149e-05", "−0.0001", "-5.149e-05"),
        ("nats", "2.1e-06", "+2e−6", "2.1e-06"),
        ("nats", "0.0", "0", "0.0"),
        ("share", "1.0264", "102.6 %", "1.0264"),
        ("exact_rate", "0.05", "5.0 %", "0.05"),
        ("n_scored", "49152", "49,152", "49152"),
        ("length", "8192", "8192", ""),
        ("epsilon", "0.01", "0.01", ""),
        ("peak_memory_bytes", "358612992", "342 MiB", "358612992"),
        ("scheme_params", '{"partial": 1.0, "theta": 10000.0}', "partial=1,theta=10000", '{"partial": 1.0, "theta": 10000.0}'),
        ("model", "own", "own", ""),
        ("nll", "", "", ""),
    ],
)  # fmt: skip
def test_digits_a_reader_needs_and_the_exact_value(column, value, text, title):
    found = cells.cell(column, value)
    assert (found.text, found.exact) == (text, title)


def test_exact_values_stand_in_titles(tmp_path):
    found = parse(folder(tmp_path / "r", ppl=[PPL]))
    titles = {e["text"]: e["attrs"].get("title") for e in found.all("td")}
    assert titles["1.3829"] == "1.3829295" and titles["[1.3000, 1.4000]"] == "1.3 to 1.4" and titles["256"] is None


def test_hostile_names_and_texts_stay_text(tmp_path):
    bad = '"><img src=x onerror=alert(1)>'
    run = folder(
        tmp_path / "r",
        {"sentence": f"{HOSTILE}: bad", "argv": [bad], "models": [{"model": HOSTILE, "warnings": [bad]}]},
        ppl=[{**PPL, "model": HOSTILE, "status": "x onclick=alert(1)", "detail": bad}],
        attribution=[{**GAIN, "model": HOSTILE, "verdict": bad, "reading": HOSTILE}],
        tokens=[{**TOKEN, "model": HOSTILE, "before": bad, "text": HOSTILE, "after": "\u202ekcab\x07"}],
    )
    (run / "plots").mkdir()
    (run / "plots" / "perplexity.svg").write_text("<svg onload='alert(1)'/>", "utf-8")
    text = page.html(read([str(run)]))
    found = Page(text)
    assert [e["text"] for e in found.all("script")] == [(page.HERE / "sort.js").read_text("utf-8")]
    assert len(found.all("img")) == 1 and found.all("img")[0]["attrs"]["src"].startswith("data:image/svg+xml;base64,")
    assert not [k for e in found.elements for k in e["attrs"] if k.startswith("on")]
    assert [e["text"] for e in found.all("mark")] == [HOSTILE]
    assert "\u202e" not in text and "\\u202ekcab\\u0007" in text
    policy = next(e for e in found.all("meta") if e["attrs"].get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy["attrs"]["content"] and "unsafe" not in policy["attrs"]["content"]


def test_policy_names_the_very_style_and_script_of_the_page(tmp_path):
    import base64
    import hashlib

    text = page.html(read([str(folder(tmp_path / "r", ppl=[PPL]))]))
    for tag in ("style", "script"):
        content = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text


def test_attribution_at_a_glance_has_a_length_in_a_row(tmp_path):
    content = {**GAIN, "component": "content_use", "nats": "0.1", "nats_ci_low": "0.08", "nats_ci_high": "0.12"}
    failed = {
        **dict.fromkeys(GAIN, ""),
        **{k: GAIN[k] for k in ("model", "scheme", "method", "base_length", "component")},
    }
    run = folder(tmp_path / "r", attribution=[GAIN, content, {**failed, "length": "1024", "status": "unsupported"}])
    first, second = parse(run).table("Attribution at a glance")
    # exp(1.5) and exp(1.25)
    assert (first["ppl at base"], first["ppl"], first["total"]) == ("4.482", "3.490", "+0.2500 ± 0.05")
    assert (first["content use"], first["reading"]) == ("+0.1000 ± 0.02", "uses far context")
    assert (second["length"], second["total"], second["reading"]) == ("1024", "", "unsupported")


def test_verdicts_come_first_and_once(tmp_path):
    lines = "Perplexity falls.\nm [rope]: ppl falls\nm: ppl falls"
    run = folder(
        tmp_path / "r",
        {"sentence": lines},
        attribution=[GAIN, {**GAIN, "length": "1024", "verdict": "longest"}, {**GAIN, "method": "sliding"}],
    )
    found = parse(run)
    texts = [e["text"] for e in found.all("p") if e["attrs"].get("class") == "finding"]
    assert texts == ["Perplexity falls.", "m [rope]: ppl falls", "longest", "ppl falls"]
    assert subjects(found) == ["m [rope] uses far context (method cut)", "m [rope] uses far context (method sliding)"]


def test_parts_stand_in_the_order_of_the_argument(tmp_path):
    run = folder(
        tmp_path / "r",
        ppl=[PPL],
        attribution=[GAIN],
        tokens=[TOKEN],
        splits=[{**GAIN, "split": "key", "part": "key"}],
    )
    (run / "plots").mkdir()
    for name in ("retrieval_gain", "ladder", "perplexity", "attribution", "retrieval", "zebra"):
        (run / "plots" / f"{name}.png").write_bytes(b"png")
    ids = ["attribution", "sweep", "ladder", "retrieval", "more", "tables", "tokens", "splits", "manifest", "caveats"]
    assert parse(run).ids == ["verdict", *ids]


def test_a_run_without_a_table_lacks_its_part(tmp_path):
    found = parse(folder(tmp_path / "r", ppl=[{**PPL, "model": "own"}]))
    assert found.ids == ["verdict", "tables", "manifest"]
    assert len(found.tables) == 1


def test_what_every_row_says_stands_once_above_the_table(tmp_path):
    run = folder(tmp_path / "r", ppl=[PPL, {**PPL, "length": "512", "protocol": "sliding", "scheme_params": ""}])
    view = tables.view("ppl", read([str(run)]))
    names = [column.name for column in view.columns]
    assert "protocol" in names and "dtype" not in names and "scheme" not in names
    assert "dtype float32" in view.same and "status ok" in view.same


def test_tokens_in_their_context(tmp_path):
    rows = [{**TOKEN, "rank": str(n), "target": str(n), "text": f"w{n}"} for n in range(1, 26)]
    run = folder(tmp_path / "r", tokens=[*rows, {**TOKEN, "length": "256", "text": "short"}])
    found = parse(run)
    marks = [e["text"] for e in found.all("mark")]
    assert marks == [f"w{n}" for n in range(1, 21)]
    contexts = [e["text"] for e in found.all("td") if e["attrs"].get("class") == "context"]
    assert contexts[0] == "she met w1 again"
    assert "20 of 26 rows of tokens.csv" in [e["text"] for e in found.all("span")]


CASES = {
    "Few blocks": {"ppl": [{**PPL, "n_blocks": "8"}]},
    "No interval": {"ppl": [{**PPL, "ci_low": "", "ci_high": "", "n_blocks": "4", "detail": "no interval: blocks: 4, needs 5"}]},
    "Sampled": {"blocks": [{**dict.fromkeys(NEEDED["blocks"], ""), "length": "512", "status": "ok", "detail": "sampled: 64 targets beyond 256 stand for all"}]},
    "Start token": {"ppl": [{**PPL, "bos": "auto"}]},
    "Clipped": {"ppl": [{**PPL, "n_clipped": "12"}]},
    "Published means": {"attribution": [{**GAIN, "detail": "published means: no interval"}]},
    "Cells without numbers": {"ppl": [{**PPL, "status": "oom", "detail": "needs 90 GiB"}]},
    "Protocol hf": {"ppl": [{**PPL, "protocol": "hf"}]},
    "Public-domain books": {"ppl": [{**PPL, "data": "novels"}]},
    "One training seed": {"ppl": [{**PPL, "model": "reference:rope"}]},
}  # fmt: skip


@pytest.mark.parametrize("title", CASES)
def test_a_caveat_stands_where_its_rows_call_for_it_and_nowhere_else(tmp_path, title):
    own = "reference:rope" if title == "One training seed" else "org/model"
    rows = {name: [{**row, "model": own} for row in rows] for name, rows in CASES[title].items()}
    assert said(folder(tmp_path / "r", **rows)) == [title]
    assert title not in said(folder(tmp_path / "clean", ppl=[{**PPL, "model": "org/model"}]))


def test_family_on_the_novels_it_was_not_trained_on_is_not_called_contaminated(tmp_path):
    rows = [{**PPL, "data": "novels"}, {**PPL, "model": "oracle:constant:nats=1", "data": "novels"}]
    assert said(folder(tmp_path / "r", ppl=rows)) == ["One training seed"]


def test_warnings_of_loading_are_caveats(tmp_path):
    run = folder(
        tmp_path / "r",
        {"models": [{"model": "own", "warnings": ["3 tensors are missing"]}]},
        ppl=[{**PPL, "model": "own"}],
    )
    (found,) = caveats.caveats(read([str(run)]))
    assert (found.title, found.texts) == ("On loading", ["own: 3 tensors are missing"])


def test_smaller_file_of_a_figure_is_inside(tmp_path):
    run = folder(tmp_path / "r", ppl=[PPL])
    (run / "plots").mkdir()
    (run / "plots" / "perplexity.png").write_bytes(b"12345678")
    (run / "plots" / "perplexity.svg").write_bytes(b"1234")
    assert parse(run).all("img")[0]["attrs"]["src"] == "data:image/svg+xml;base64,MTIzNA=="


def test_figure_without_room_is_named_with_what_it_shows(tmp_path, monkeypatch):
    run = folder(tmp_path / "r", ppl=[PPL])
    (run / "plots").mkdir()
    (run / "plots" / "perplexity.png").write_bytes(b"12345678")
    monkeypatch.setattr(figures, "ROOM", 20)
    found = parse(run)
    assert not found.all("img")
    texts = [e["text"] for e in found.all("p")]
    assert "No room on this page; the figure is in plots/perplexity.png" in texts
    assert "reference:alibi: perplexity 3.987 at 256" in texts


def test_page_too_large_to_pass_on_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "LARGEST", 5000)
    with pytest.raises(UserError, match=r"the page would have 0\.0 MB, at most 0 MB can be passed on; give fewer runs"):
        parse(folder(tmp_path / "r", ppl=[PPL]))


def test_long_tables_say_what_they_leave_out(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 2)
    run = folder(tmp_path / "r", ppl=[{**PPL, "length": str(n)} for n in (256, 512, 1024)])
    found = parse(run)
    assert [row["length"] for row in found.table("Perplexity")] == ["256", "512"]
    assert "Shown: the first 2 of 3 rows; all are in ppl.csv." in [e["text"] for e in found.all("p")]


def test_several_runs_stand_side_by_side(run, tmp_path):
    folder(tmp_path / "a" / "r", ppl=[PPL, {**PPL, "length": "512"}])
    folder(tmp_path / "b" / "r", ppl=[{**PPL, "ppl": "4.25", "data": "other.txt"}])
    ran = run("report", "a/r", "b/r", "a/r")
    assert (ran.code, ran.err) == (2, "lengthbench: 2 runs: say where their page goes, --out FILE.html\n")
    assert run("report", "a/r", "b/r", "--out", "pages/both.html").code == 0
    found = Page(Path("pages/both.html").read_text("utf-8"))
    (row,) = found.table("Side by side: ppl")
    assert (row["a/r"], row["b/r"]) == ("3.987", "4.250")
    assert [r["run"] for r in found.table("Perplexity by length")] == ["a/r", "a/r", "b/r"]
    assert [e["text"] for e in found.all("h3")][:2] == ["a/r", "b/r"]
    texts = [e["text"] for e in found.all("dd")]
    assert "The runs differ in data (a/r: own.txt; b/r: other.txt)." in texts


def test_an_interrupted_run_is_marked_and_has_no_verdict(run, tmp_path):
    """Its sentence may rest on cells of which only some blocks were finished."""
    folder(tmp_path / "r", {"status": "interrupted"}, ppl=[PPL])
    ran = run("report", "r")
    mark = "unfinished (interrupted): only the cells that were finished are shown"
    assert (ran.code, ran.err) == (0, f"lengthbench: note: r: {mark}\n")
    text = Path("r/report.html").read_text("utf-8")
    found = Page(text)
    assert [e["text"] for e in found.all("p") if e["attrs"].get("class") == "mark"] == [mark]
    assert "No verdict: the run is not finished." in text
    assert not [e for e in found.all("p") if e["attrs"].get("class") == "finding"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t[:-4], "r/ppl.csv is damaged: its last line was cut short; measure again"),
        (lambda t: t[: t.rindex(",")] + "\n", "r/ppl.csv is damaged: row 3 has 20 of 21 cells; measure again"),
        (lambda t: t.replace("protocol", "protokoll"), "r/ppl.csv is damaged: it has no column protocol; measure again"),
        (lambda t: t.replace(",512,", ",long,"), "r/ppl.csv is damaged: row 3: length 'long' is no number; measure again"),
        (lambda t: "", "r/ppl.csv is damaged: its last line was cut short; measure again"),
        (lambda t: "\n".join(t.split("\n")[:2]) + "\n", "r/ppl.csv is damaged: it has 1 of the 2 rows counted in the manifest"),
        (lambda t: t.split("\n")[0] + "\n", "r: status complete, and no table has a row; measure again"),
        (lambda t: t.replace("own.txt", "\udcff", 1), "r/ppl.csv is damaged: byte 450 is no UTF-8; measure again"),
    ],
)  # fmt: skip
def test_damaged_tables_are_refused_in_one_line(run, tmp_path, damage, message):
    counted = {"command": "ppl", "rows_per_status": {"ok": 2}}
    path = folder(tmp_path / "r", counted, ppl=[PPL, {**PPL, "length": "512", "stride": "512"}]) / "ppl.csv"
    path.write_bytes(damage(path.read_text("utf-8")).encode("utf-8", "surrogateescape"))
    ran = run("report", "r")
    assert (ran.code, ran.out) == (2, "")
    assert re.sub(r"byte \d+", "byte 450", ran.err) == f"lengthbench: {message}\n"
    assert not Path("r/report.html").exists()


def test_a_run_that_has_nothing_yet_is_refused(run, tmp_path):
    folder(tmp_path / "r", {"status": "running"})
    assert (
        run("report", "r").err == "lengthbench: r: status running, and no table has a row; go on with it by --resume\n"
    )
    assert run("report", "nowhere").err == "lengthbench: nowhere is not a run folder: it has no manifest.json\n"


@pytest.mark.parametrize("out", ["page.pdf", "r", ""])
def test_out_must_name_a_page(run, tmp_path, out):
    folder(tmp_path / "r", ppl=[PPL])
    ran = run("report", "r", "--out", out)
    assert (ran.code, ran.err) == (2, f"lengthbench: --out {out}: give a file that ends in .html\n")


def test_a_place_that_cannot_be_written_is_named(run, tmp_path):
    folder(tmp_path / "r", ppl=[PPL])
    (tmp_path / "file").write_text("")
    ran = run("report", "r", "--out", "file/page.html")
    assert ran.code == 2 and "cannot write file/page.html: " in ran.err and "--out FILE.html" in ran.err


def test_the_page_needs_neither_torch_nor_matplotlib(tmp_path):
    run = folder(tmp_path / "r", ppl=[PPL], attribution=[GAIN])
    code = (
        "import sys\nfrom lengthbench.report import page, runs\n"
        f"page.html(runs.read([{str(run)!r}]))\n"
        "print(sorted({'torch', 'transformers', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


STUB = """
const fs = require("fs"), vm = require("vm");
const { script, table, clicks } = JSON.parse(fs.readFileSync(0, "utf-8"));
const element = (attrs, text) => ({
  attrs: { ...attrs }, textContent: text, dataset: "data-key" in attrs ? { key: attrs["data-key"] } : {},
  classList: { contains: (name) => (attrs.class ?? "").split(" ").includes(name) },
  getAttribute(name) { return this.attrs[name] ?? null; },
  setAttribute(name, value) { this.attrs[name] = value; },
  removeAttribute(name) { delete this.attrs[name]; },
});
const heads = table.heads.map((head) => {
  const made = element(head.attrs, head.text), button = { addEventListener: (kind, act) => { made[kind] = act; } };
  return Object.assign(made, { querySelector: (name) => (name === "button" ? button : null) });
});
const body = { rows: table.rows.map((row) => ({ cells: row.map((cell) => element(cell.attrs, cell.text)) })) };
body.append = (...rows) => { body.rows = [...body.rows.filter((row) => !rows.includes(row)), ...rows]; };
const document = { querySelectorAll: () => [{ tHead: { rows: [{ cells: heads }] }, tBodies: [body] }] };
vm.runInNewContext(script, { document, Intl, Number });
const seen = clicks.map((column) => {
  heads[column].click();
  return [body.rows.map((row) => row.cells[column].textContent), heads.map((head) => head.attrs["aria-sort"] ?? null)];
});
console.log(JSON.stringify(seen));
"""


@pytest.fixture
def unsorted(tmp_path):
    """A page whose perplexities 12.5, none, 9.875, infinite and 1,024 sort differently as words."""
    values = ("12.5", "", "9.875", "inf", "1024.0")
    rows = [{**PPL, "model": f"m{10 - n}", "ppl": v, "length": str(256 * (n + 1))} for n, v in enumerate(values)]
    return folder(tmp_path / "r", ppl=rows)


UP = ["9.875", "12.50", "1,024", "∞", ""]
DOWN = ["∞", "1,024", "12.50", "9.875", ""]


@pytest.mark.skipif(NODE is None, reason="no node to run the page's script in")
def test_tables_sort_by_number_and_by_word_with_what_is_empty_last(unsorted):
    found = parse(unsorted)
    (table,) = found.tables
    names = [head["text"] for head in table["heads"]]
    ppl, model = names.index("ppl"), names.index("model")
    asked = {
        "script": (page.HERE / "sort.js").read_text("utf-8"),
        "table": {"heads": table["heads"], "rows": table["rows"][1:]},
        "clicks": [ppl, ppl, model],
    }
    ran = subprocess.run([NODE, "-e", STUB], input=json.dumps(asked), capture_output=True, text=True, check=True)
    (up, marked), (down, turned), (words, moved) = json.loads(ran.stdout)
    assert up == UP and down == DOWN
    assert words == ["m6", "m7", "m8", "m9", "m10"]
    assert (marked[ppl], turned[ppl]) == ("ascending", "descending")
    assert [n for n, sort in enumerate(moved) if sort] == [model]


def test_headers_are_buttons_a_keyboard_reaches(unsorted):
    found = parse(unsorted)
    heads, buttons = found.tables[0]["heads"], [b for b in found.all("button") if b["attrs"].get("type") == "button"]
    assert [h["text"] for h in heads] == [b["text"] for b in buttons] and len(heads) > 5
    regions = [e for e in found.elements if e["attrs"].get("role") == "region"]
    assert regions and all(e["attrs"]["tabindex"] == "0" and e["attrs"]["aria-label"] for e in regions)


HARNESS = """<!DOCTYPE html><body><script>
const frame = document.createElement("iframe");
frame.width = 390; frame.height = 844;
frame.onload = () => {
  const page = frame.contentDocument, table = page.querySelector("table.sortable");
  const column = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent === "ppl");
  const head = table.tHead.rows[0].cells[column], seen = [];
  for (let i = 0; i < 2; i++) {
    head.querySelector("button").click();
    seen.push([head.getAttribute("aria-sort"), [...table.tBodies[0].rows].map((row) => row.cells[column].textContent)]);
  }
  const wide = page.documentElement.scrollWidth;
  document.body.innerHTML = "<pre></pre>";
  document.body.firstChild.textContent = JSON.stringify({ seen, wide });
};
frame.srcdoc = PAGE;
document.body.append(frame);
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: the page was not opened in a browser")
def test_in_a_browser_it_opens_sorts_and_fits_a_phone(unsorted, tmp_path):
    text = page.html(read([str(unsorted)]))
    (tmp_path / "page.html").write_text(text, "utf-8")
    (tmp_path / "harness.html").write_text(HARNESS.replace("PAGE", json.dumps(text).replace("<", "\\u003c")), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"]

    def dump(name):
        url = (tmp_path / name).as_uri()
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        return subprocess.run(
            [BROWSER, *flags, profile, "--dump-dom", url], capture_output=True, text=True, timeout=120
        )

    opened, driven = dump("page.html"), dump("harness.html")
    assert "What longer input did" in opened.stdout
    assert not [line for line in (opened.stderr + driven.stderr).splitlines() if "CONSOLE" in line]
    found = json.loads(Page(driven.stdout).all("pre")[0]["text"])
    assert found["seen"] == [["ascending", UP], ["descending", DOWN]]
    assert found["wide"] <= 390
