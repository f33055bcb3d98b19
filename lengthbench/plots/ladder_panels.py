"""Loss against visible context for many models, or very different ones: a panel each, with its own scale."""

from matplotlib.figure import Figure

from lengthbench.plots import caption, curve, grid, ladder_lines, notes, rungs, style, ticks
from lengthbench.plots.rungs import Ladder
from lengthbench.plots.scale import Scale

HEIGHT, ROW = 1.4, 0.17


def draw(ladders: list[Ladder], foot: list[str]) -> Figure:
    lines = [ladder.full for ladder in ladders]
    trained = caption.trained(lines)
    foot = [*foot, "Every panel has its own scale." + (" Vertical line: the training length." if trained else "")]
    columns = 2 if len(ladders) in (2, 4) else 3
    made = grid.build(len(ladders), columns, HEIGHT, ROW * len(foot) + 0.08, own_scales=True)
    shortest, longest = curve.span(lines)
    for i, (ladder, axes) in enumerate(zip(ladders, made.panels, strict=True)):
        y, own = rungs.view([ladder]), ladder.full.train_length
        # Room at the foot, where the horizon lies.
        y = Scale(y.column, y.low - 0.12 * (y.high - y.low), y.high)
        axes.set_xlim(shortest, longest)
        ladder_lines.scale(axes, y)
        ladder_lines.plot(axes, ladder, y.high)
        if ladder.horizon is not None:
            ladder_lines.mark_horizon(axes, ladder, 0.06, transform=axes.get_xaxis_transform())
        if own and shortest <= own <= longest:
            axes.axvline(own, color="#9a9a9a", linewidth=0.8, zorder=1.5)
        ticks.length_axis(axes, curve.measured(lines), made.width, [own] if own in curve.measured(lines) else ())
        axes.tick_params(labelbottom=made.lowest[i])
        leaves = notes.exit_of(ladder.full, y, ladder.full.name)
        if leaves:
            axes.plot([leaves.length], [y.high], "^", color=style.INK, markersize=4.5, clip_on=False, zorder=6)
        told = [f"↑ {leaves.short}" if leaves else "", *notes.stops(ladder.full), ladder.told()]
        made.name(i, ladder.full.name, "; ".join(filter(None, told)), style.ink(ladder.full.ink.color))
    caption.axis_titles(made, "visible context (tokens, log scale)", "loss (nats per token)")
    caption.write_foot(made.figure, foot, grid.LEFT, 0.1, ROW)
    return made.figure
