"""Prompts: exact lengths, evidence that only moves, controls, collisions, and the same bytes in every process."""

import functools
import itertools
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lengthbench import tasks
from lengthbench.corpora import source
from lengthbench.errors import UserError
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.models.tokenizers_file import FileTokenizer
from lengthbench.retrieval import item as items
from lengthbench.retrieval import jsonl, prompt, scoring
from lengthbench.retrieval.haystack import Haystacks
from lengthbench.retrieval.occurs import occurs
from lengthbench.retrieval.prompt import Frame, build, prepare, smallest

DEPTHS = (0.0, 0.3, 0.5, 0.9, 1.0)
NAMES = tuple(tasks.names())


@functools.cache
def text() -> str:
    return source.read("novels").documents[1].text[:60_000]


@pytest.fixture(scope="session")
def bpe(tmp_path_factory):
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=800, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator([text()], trainer)
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    backend.save(str(path))
    return FileTokenizer(path)


@pytest.fixture(scope="session")
def plain():
    """No merges at all: a token a character, unknown ones dropped to bytes."""
    return ByteTokenizer()


@pytest.fixture(scope="session")
def stacks(bpe, plain):
    return {tokenizer: Haystacks(tokenizer, [text()]) for tokenizer in (bpe, plain)}


@pytest.fixture(params=["bytes", "bpe"])
def tokenizer(request, bpe, plain):
    return {"bytes": plain, "bpe": bpe}[request.param]


# ---- lengths, depths and arms


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_exact_lengths_and_evidence_that_only_moves(name, tokenizer, stacks):
    task, hay = tasks.read(name), stacks[tokenizer]
    for trial in range(2):
        item = prepare(task, 0, trial, hay)
        least = smallest(task, tokenizer)
        for length in (least, least + 1, least + 117, least + 800):
            before = []
            for depth in DEPTHS:
                made = build(item, "evidence", length, depth, tokenizer, hay)
                assert len(made.tokens) == made.length == sum(made.parts.values()) == length
                assert made.n_prompt_tokens + made.n_answer_tokens == length
                answer = made.tokens[made.answer_at :]
                assert np.array_equal(answer, made.answer.tokens) and made.answer_at == made.n_prompt_tokens
                assert tokenizer.decode(answer).strip() == item.answer_text
                evidence = [made.tokens[a:b].tolist() for a, b in made.spans]
                before.append((made.depth, evidence, made.spans[0][0]))
                for arm in ("absent", "decoy"):
                    other = build(item, arm, length, depth, tokenizer, hay)
                    assert len(other.tokens) == length
                    # A decoy of another size costs the end of the haystack, where that falls its last character.
                    n = max(0, min(start for start, _ in made.spans + other.spans) - 3 * (arm == "decoy"))
                    assert np.array_equal(other.tokens[:n], made.tokens[:n])
                    assert not any(
                        occurs(a, tokenizer.decode(other.tokens[: other.answer_at])) for a in item.answers.values()
                    )
            depths, pieces, starts = zip(*before, strict=True)
            assert all(p == pieces[0] for p in pieces)
            assert list(depths) == sorted(depths) and list(starts) == sorted(starts)
            assert depths[0] == 0 and depths[-1] == 1


def test_text_before_deeper_evidence_continues_the_text_before_shallower(tokenizer, stacks):
    hay = stacks[tokenizer]
    item = prepare(tasks.read("needle"), 0, 3, hay)
    made = [build(item, "evidence", 600, depth, tokenizer, hay) for depth in DEPTHS]
    for shallow, deep in itertools.pairwise(made):
        n = shallow.spans[0][0]
        assert np.array_equal(shallow.tokens[:n], deep.tokens[:n])
    without = [np.delete(p.tokens, np.arange(*p.spans[0])) for p in made]
    assert all(np.array_equal(w, without[0]) for w in without)


def test_absent_has_as_many_tokens_in_the_same_place(tokenizer, stacks):
    hay = stacks[tokenizer]
    for name in ("needle", "kv", "multivalue"):
        item = prepare(tasks.read(name), 0, 1, hay)
        with_, without = (build(item, arm, 800, 0.5, tokenizer, hay) for arm in ("evidence", "absent"))
        assert with_.spans == without.spans
        inside = np.zeros(800, bool)
        for a, b in with_.spans:
            inside[a:b] = True
        assert np.array_equal(with_.tokens[~inside], without.tokens[~inside])


def test_evidence_stands_at_a_sentence_or_where_none_is_near_at_a_word(plain):
    short = Haystacks(plain, ["Mr. Fox slept. Rain fell on J. Hill! The cat sat there. " * 60])
    long = Haystacks(plain, ["rain fell and the cat sat there and " * 90])
    item = items.make(tasks.read("recall"), 0, 0)
    for depth in np.linspace(0, 1, 23):
        made = build(item, "evidence", 2000, float(depth), plain, short)
        a, b = made.spans[0]
        assert abs(made.depth - depth) <= 0.02
        assert made.text(plain)[:a].endswith(("slept.", "Hill!", "there.")) or made.depth in (0, 1)
        assert made.tokens[b] == ord(" ")
        made = build(item, "evidence", 2000, float(depth), plain, long)
        a, b = made.spans[0]
        assert abs(made.depth - depth) <= (0.003 if 0.05 < depth < 0.95 else 0.05)
        assert made.tokens[b] == ord(" ") and (a == 0 or made.text(plain)[a - 1].isalpha())


@pytest.mark.parametrize("name", [n for n in NAMES if "." in n])
def test_no_character_is_split(name, plain, stacks):
    task = tasks.read(name)
    for trial in range(4):
        item = prepare(task, 0, trial, stacks[plain])
        for arm in ("evidence", "absent", "decoy"):
            for depth in DEPTHS:
                made = build(item, arm, smallest(task, plain) + 333 + trial, depth, plain, stacks[plain])
                assert "\ufffd" not in made.text(plain)


def test_oracle_is_evidence_and_question_alone(plain, stacks):
    item = prepare(tasks.read("recall"), 0, 0, stacks[plain])
    made = build(item, "oracle", 4096, 0.5, plain, stacks[plain])
    assert made.text(plain) == item.evidence[0].text + item.question + item.answer_text
    assert made.length == len(made.tokens) and made.depth is None and made.parts["hay"] == 0


def test_start_token_template_and_output_budget_count(bpe, stacks):
    item = prepare(tasks.read("needle"), 0, 0, stacks[bpe])
    frame = Frame(start=7, before=np.array([1, 2, 3]), after=np.array([4, 5]), budget=32)
    made = build(item, "evidence", 4096, 0.5, bpe, stacks[bpe], frame)
    assert len(made.tokens) + 1 + 32 == 4096 == made.length == sum(made.parts.values())
    assert made.n_prompt_tokens == 4064 and made.tokens[:3].tolist() == [1, 2, 3]
    lead = made.parts["answer_prefix"]
    assert made.tokens[len(made.tokens) - lead - 2 : len(made.tokens) - lead].tolist() == [4, 5]
    without = build(item, "evidence", 4096, 0.5, bpe, stacks[bpe], Frame(answer_prefix=False))
    assert without.parts["answer_prefix"] == 0 and len(without.tokens) == 4096


# ---- seeds


GOLDEN = {
    0: "c9dfeb955a6a055b7e1eb769f95d099dd8a158b9f4fc42d05dfa36a9c061ad68",
    7: "3d4a4fe8c31a89ca47b584cdbec5b50bc3ed176483386b443a8628b5e1b1d72f",
}


def digest(trial: int) -> str:
    hay = Haystacks(ByteTokenizer(), [text()])
    return build(prepare(tasks.read("recall"), 0, trial, hay), "evidence", 256, 0.5, ByteTokenizer(), hay).sha256


@pytest.mark.parametrize("trial", GOLDEN)
def test_prompts_are_the_same_in_every_process(trial):
    assert digest(trial) == GOLDEN[trial]
    code = f"import sys; sys.path.insert(0, {str(__file__.rsplit('/', 1)[0])!r}); import test_prompts; print(test_prompts.digest({trial}))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "99"}
    )
    assert out.stdout.strip() == GOLDEN[trial]


def test_trials_and_seeds_differ_and_are_independent_of_one_another():
    task = tasks.read("needle")
    alone = items.make(task, 0, 7)
    for trial in range(7):
        items.make(task, 0, trial)
    again = items.make(task, 0, 7)
    assert again == alone
    assert len({items.make(task, seed, trial).answer_text for seed in range(3) for trial in range(10)}) == 30


def test_an_item_asks_what_its_evidence_says_and_wrong_answers_are_of_its_form():
    item = items.make(tasks.read("needle"), 0, 0)
    assert item.evidence[0].text.endswith(f" is {item.answer_text}.")
    wrong = {items.text_of(one) for one in item.wrong}
    assert item.answer_text not in wrong and all(len(w) == 5 and w.isdigit() for w in wrong)
    assert all(item.answer_text not in texts[0] for texts in item.decoys)


def test_sub_answers_are_scored_apart_and_the_words_between_are_not(plain, stacks):
    item = prepare(tasks.read("documents"), 0, 0, stacks[plain])
    made = build(item, "evidence", 900, 0.5, plain, stacks[plain])
    said = {k: plain.decode(made.answer.tokens[at]).strip() for k, at in made.answer.parts.items()}
    assert said == item.answers and set(said) == {"year", "report"}
    assert len(made.scored) < len(made.answer.tokens)
    assert plain.decode(made.tokens[made.scored]).split() == [said["year"], said["report"]]


# ---- E3: a length below the overhead


@pytest.mark.parametrize("name", ["recall", "needle", "documents.ja"])
def test_a_length_too_small_names_the_smallest_at_once(name, tokenizer, stacks):
    task = tasks.read(name)
    item = prepare(task, 0, 0, stacks[tokenizer])
    least = smallest(task, tokenizer)
    began = time.monotonic()
    for length in (16, least - 40):
        with pytest.raises(
            UserError, match=rf"task {name}: length {length} is too short; .* smallest possible is {least}"
        ):
            build(item, "evidence", length, 0.5, tokenizer, stacks[tokenizer])
    assert time.monotonic() - began < 1
    assert len(build(item, "evidence", least, 0.5, tokenizer, stacks[tokenizer]).tokens) == least


def test_a_haystack_too_short_names_the_longest(plain):
    hay = Haystacks(plain, ["One. Two, three. Four five six. " * 20])
    item = prepare(tasks.read("recall"), 0, 0, hay)
    longest = build(item, "oracle", 0, 0.5, plain, hay).length + 640
    with pytest.raises(UserError, match=f"has 640; the longest possible is {longest}"):
        build(item, "evidence", 4096, 0.5, plain, hay)
    assert len(build(item, "evidence", longest, 0.5, plain, hay).tokens) == longest


# ---- N7: collisions


def test_a_value_that_the_haystack_holds_is_drawn_anew(plain):
    task = tasks.read("recall")
    drawn = items.make(task, 0, 0).answer_text
    hay = Haystacks(plain, [text() + f" They counted {drawn} sheep."])
    item = prepare(task, 0, 0, hay)
    assert item.redraws == 1 and item.answer_text != drawn
    assert prepare(task, 0, 0, Haystacks(plain, [text()])).redraws == 0


def test_values_that_cannot_be_drawn_anew_are_refused(plain, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        'description = "x"\nversion = 1\nlanguage = "en"\nquestion = " Who?"\nanswer = " {who}"\nn_wrong = 1\n'
        'filler = [" No."]\n[[evidence]]\ntext = " It was {who}."\n[draw.who]\nchoice = ["Holmes", "Watson"]\n'
    )
    with pytest.raises(
        UserError, match=r"'(Holmes|Watson)' occurs in the haystack, and so do the values of 50 further"
    ):
        prepare(tasks.read(path), 0, 0, Haystacks(plain, [text()]))


# ---- one's own documents


def own(tmp_path, answer: str) -> tasks.Task:
    clauses = [
        {"text": f"Clause about {thing}: nothing is said of money."} for thing in ("rain", "snow", "wind", "sun") * 8
    ]
    asked = {
        "text": "The deposit is 740 crowns.",
        "question": "How much is the deposit?",
        "answer": answer,
        "wrong": ["910 crowns"],
    }
    second = {"text": "The rent is due in May.", "question": "When is the rent due?", "answer": "May"}
    (tmp_path / "my.jsonl").write_text("\n".join(json.dumps(row) for row in [asked, second, *clauses]))
    (tmp_path / "my.toml").write_text(
        'description = "my contracts"\nversion = 1\nlanguage = "en"\ndocuments = "my.jsonl"\nn_wrong = 1\n'
        'question = "\\n\\nQuestion: {question}"\nanswer_prefix = "\\nAnswer:"\nanswer = " {answer}"\n'
        'filler = ["\\n\\n[{n}] Left empty."]\n[[evidence]]\ntext = "\\n\\n[{n}] {text}"\n'
        '[haystack]\nsource = "rows"\nunits = ["\\n\\n[{n}] {text}"]\n[draw.n]\ndigits = 4\n'
    )
    return tasks.read(tmp_path / "my.toml")


def test_ones_own_documents_are_evidence_and_haystack(tokenizer, tmp_path):
    task, hay = own(tmp_path, "740 crowns"), Haystacks(tokenizer)
    found = [prepare(task, 0, trial, hay) for trial in range(2)]
    assert sorted(item.answer_text for item in found) == ["740 crowns", "May"]
    item = next(item for item in found if item.line == 1)
    made = build(item, "evidence", 700, 0.5, tokenizer, hay)
    assert len(made.tokens) == 700 and "] The deposit is 740 crowns." in made.text(tokenizer)
    assert [w.text for w in made.wrong] == ["910 crowns"]
    with pytest.raises(UserError, match="the longest possible is"):
        build(item, "evidence", 90_000, 0.5, tokenizer, hay)


def test_an_answer_that_other_documents_hold_too_is_refused(plain, tmp_path):
    task, hay = own(tmp_path, "money"), Haystacks(plain)
    item = next(i for i in (prepare(task, 0, trial, hay) for trial in range(2)) if i.line == 1)
    with pytest.raises(UserError, match="the answer of line 1, 'money', also occurs in the haystack"):
        build(item, "evidence", 700, 0.5, plain, hay)


def test_prompts_of_others_keep_their_own_length(plain):
    made = jsonl.build(jsonl.Given(1, "A 42. Which?", ("42", "43"), 4096, " It is"), plain, Frame(start=0))
    assert made.text(plain) == "A 42. Which? It is 42, 43" and made.length == len(made.tokens) + 1
    with pytest.raises(UserError, match="line 1: 26 tokens, the model takes at most 20"):
        jsonl.check(jsonl.Given(1, "", ("",), None, ""), made, 20)


# ---- N1: generated text


@pytest.mark.parametrize(
    ("output", "exact", "contains"),
    [
        ("48213", True, True),
        ("The answer is 48213.", False, True),
        ("The code for Oslo is 48213.", False, True),
        (" 48,213", True, True),
        ("I do not know", False, False),
        ("48213 or 91372", False, False),
        ("148213", False, False),
        ("48213, 91372", False, False),
        ("４８２１３", True, True),
    ],
)
def test_scoring_of_generated_text(output, exact, contains):
    draw = tasks.read("needle").draw["code"]
    assert scoring.exact(output, "48213") is exact
    assert scoring.contains(output, ["48213"], draw=draw) is contains
    assert scoring.NORMALISER == "nfkc-casefold-digits-1"


def test_listed_choices_are_no_answer_and_all_of_several_are_needed():
    assert scoring.contains("No lobster.", ["lobster"], ["rye", "soy"])
    assert not scoring.contains("lobster, rye or soy", ["lobster"], ["rye", "soy"])
    assert scoring.contains("11111, 22222 and 33333", ["11111", "22222", "33333"])
    assert not scoring.contains("11111 and 33333", ["11111", "22222", "33333"])


def test_a_value_occurs_as_a_word_of_its_own():
    assert occurs("oslo", "In Oslo's harbour") and occurs("猫", "子猫がいる") and not occurs("14", "1432")
    assert not occurs("May", "Maybe") and occurs("740 crowns", "for 740 crowns.")


def test_arms_are_those_documented():
    assert prompt.ARMS == ("evidence", "absent", "oracle", "decoy")
