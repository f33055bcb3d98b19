"""Which columns of which table a reader needs, in which order and under which title."""

IDENTITY = ("model", "scheme", "scheme_params")
LOSS_CI, NATS_CI = ("ci_low", "ci_high"), ("nats_ci_low", "nats_ci_high")
COST = ("seconds", "tokens_per_second", "peak_memory_bytes")
SETTINGS = ("train_length", "dtype", "device", "route", "batch", "bos", "data")
COLUMNS: dict[str, tuple[str | tuple[str, str], ...]] = {
    "attribution": (
        *IDENTITY, "method", "base_length", "length", "component", "stride", "nats", NATS_CI, "share", "nll_from",
        "nll_to", "s_bound", "n_scored", "n_blocks", "reading", *SETTINGS, "status", "detail",
    ),
    "ppl": (
        *IDENTITY, "protocol", "stride", "length", "ppl", "nll", LOSS_CI, "bits_per_byte", "n_scored", "n_blocks",
        "n_clipped", *COST, *SETTINGS, "status", "detail",
    ),
    "context_summary": (
        *IDENTITY, "length", "stride", "best_rung", "best_nll", "horizon", ("horizon_low", "horizon_high"), "epsilon",
        "n_groups", "base_length", *SETTINGS, "status", "detail",
    ),
    "context": (
        *IDENTITY, "length", "condition", "stride", "rung", "context_min", "context_max", "nll", LOSS_CI, "ppl",
        "above_best", ("above_best_ci_low", "above_best_ci_high"), "n_scored", "n_groups", *SETTINGS, "status",
        "detail",
    ),
    "needle": (
        *IDENTITY, "task", "task_version", "mode", "template", "length", "position", "depth", "exact_rate", LOSS_CI,
        "choice_rate", "chance", "contains_rate", "absent_exact_rate", "above_absent", "decoy_exact_rate",
        "oracle_exact_rate", "answer_nll", "absent_nll", "evidence_gain", ("gain_ci_low", "gain_ci_high"), "n_trials",
        "n_cut", *SETTINGS, "status", "detail",
    ),
    "contrasts": (
        *IDENTITY, "task", "task_version", "mode", "length", "contrast", "exact_difference",
        ("exact_ci_low", "exact_ci_high"), "nll_difference", ("nll_ci_low", "nll_ci_high"), "n_trials", "status",
        "detail",
    ),
    "speed": (
        *IDENTITY, "length", "phase", "tokens_per_second", "ratio", ("ratio_low", "ratio_high"), "relative_to",
        "peak_memory_bytes", *SETTINGS, "status", "detail",
    ),
    "positions": (
        *IDENTITY, "protocol", "stride", "length", "context_from", "context_to", "nll", LOSS_CI, "n_scored",
        "train_length", "status", "detail",
    ),
    "splits": (
        *IDENTITY, "base_length", "length", "split", "part", "nats", NATS_CI, "cut_nll", "full_nll", "longppl",
        "n_scored", "share_of_targets", "status", "detail",
    ),
}  # fmt: skip
"""Table -> its columns; a pair is an interval and goes into one."""
TITLES = {
    "attribution": "Attribution: change of the loss and its parts, in nats a token",
    "ppl": "Perplexity by length, on the same targets",
    "context_summary": "Best rung and horizon of the ladder",
    "context": "Loss of the same targets by visible context",
    "needle": "Retrieval by length and position",
    "contrasts": "Retrieval: what the position does, on the same trials",
    "speed": "Speed",
    "positions": "Loss by how much context a target had",
    "splits": "Splits: what cut − full is for kinds of targets",
}
HOISTED = {
    *IDENTITY[1:], *SETTINGS, "protocol", "method", "stride", "base_length", "n_scored", "n_blocks", "n_groups",
    "n_clipped", "n_trials", "n_cut", "epsilon", "condition", "task_version", "mode", "template", "relative_to",
    "phase", "status", "detail",
}  # fmt: skip
"""Columns that go into the line above the table where every row says the same."""
BY_MODEL = ("scheme_params", "route")
"""Columns that go there too where every row of a model says the same."""
LABELS = {"bits_per_byte": "bits/byte", "peak_memory_bytes": "peak memory", "tokens_per_second": "tokens/s"}
BESIDE = {"ppl": "ppl", "attribution": "nats", "context": "nll", "needle": "exact_rate", "speed": "tokens_per_second"}
"""Table -> the value by which several runs are set side by side."""
