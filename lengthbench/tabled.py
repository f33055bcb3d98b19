"""`attribute --from`: a run folder made from a table of perplexities, without any model."""

from collections.abc import Sequence

from lengthbench.errors import UserError
from lengthbench.probes import published
from lengthbench.probes.attribution_tables import ATTRIBUTION
from lengthbench.request import Outcome, Request
from lengthbench.run import table
from lengthbench.run.folder import open_run


def attribute(spec: str, base: int | None, wanted: Sequence[int], request: Request) -> Outcome:
    """Attribution of the models in the table `spec` (a shipped name or a CSV file)."""
    entries = published.attribute(published.read(spec), base, wanted)
    if not entries:
        raise UserError(
            f"--from {spec}: no model in it has nonoverlapping and sliding perplexities, of one stride, at "
            f"{base or 'its training length'} and at a longer length"
        )
    rows = published.rows(entries, spec)
    last = {subject: verdict for subject, _, verdict in entries}
    sentence = "\n".join(f"{published.title(s, entries)}: {verdict.text}" for s, verdict in last.items())
    folder = None
    if request.keep and not request.dry_run:
        settings = {"from": spec, "base": base, "lengths": list(wanted)}
        run = open_run(request.out, "attribute", [spec], settings, resume=False)
        table.write(run.path, ATTRIBUTION, rows)
        from lengthbench.plots.folder import draw

        draw(run.path)
        run.finish("complete", rows_per_status={"ok": len(rows)}, sentence=sentence)
        folder = run.path
    return Outcome({"attribution": rows}, folder, sentence)
