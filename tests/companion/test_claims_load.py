"""The claims of this project load; claims that cannot be used say what is wrong with them."""

import hashlib
import re
from pathlib import Path

import pytest
import yaml

from attnlib.companion.claims import load_claims, load_papers
from attnlib.companion.published import Reference, read_tables
from attnlib.companion.verdicts import Tolerance, Trend
from attnlib.errors import BadInput, UnknownName
from attnlib.experiments import registry

FOLDER = Path(__file__).parents[2] / "claims"
CLAIM = {
    "id": "a-claim",
    "place": "Section 1",
    "says": "Something.",
    "experiment": "temporal_share",
    "keys": ["spearman"],
    "judge": {"kind": "trend", "direction": "positive"},
    "profiles": ["paper", "quick"],
}
KNOWN = ["temporal_share", "alignment_breakdown"]
CSV = 'table,dataset,quantity,value,note\n2,IMDB,xi,87,\n2,IMDB,size,"(2, 3)",\n2,SST,xi,78,starred\n'


def write(folder, *claims, name="paper.yaml", **fields):
    content = {
        "paper": "p",
        "title": "A paper",
        "url": "https://example.org",
        "claims": list(claims),
    } | fields
    (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def without(*names):
    return {name: value for name, value in CLAIM.items() if name not in names}


def test_every_claim_of_the_project_loads_and_names_an_experiment_that_exists():
    papers = load_papers(FOLDER)
    assert [paper.name for paper in papers] == ["aitken2021", "beyond", "primers", "snell2021"]
    for paper in papers[:3]:
        named = {claim.experiment for claim in paper.claims if not claim.impossible}
        assert named <= set(registry.names())
        assert all(claim.judge is not None or claim.impossible for claim in paper.claims)
    published = [claim.published for claim in papers[3].claims if claim.published is not None]
    tables = [one.reference.table for one in published if one.reference is not None]
    assert sorted(set(tables), key=int) == [str(number) for number in range(2, 11)]


def test_published_numbers_are_as_transcribed():
    content = (FOLDER / "published" / "snell2021_tables.csv").read_bytes()
    digest = "e5566b809b955bc670ed6c7968fc99845e4ccb07693c5b11cd796a4d82134685"
    assert hashlib.sha256(content).hexdigest() == digest


def test_unavailable_numbers_are_the_news_pairs_sets_in_part_and_vocabularies_that_need_glove():
    (entries,) = (paper.tables.entries for paper in load_papers(FOLDER) if paper.tables)
    assert len(entries) == 561
    in_part = {"Amzn": "val #", "Yelp": "val #", "IWSLT14": "val #", "AG News": "val # median val seq len"}
    for entry in entries:
        missing = entry.dataset.startswith("News")
        if entry.table == "9" and entry.quantity == "vocab size":
            missing = missing or entry.dataset not in ("Multi30k", "IWSLT14")
        elif entry.table == "9":
            missing = missing or (entry.dataset in in_part and entry.quantity not in in_part[entry.dataset])
        assert bool(entry.unavailable) == missing, entry


def test_baselines_of_tau_and_sizes_that_we_choose_are_met_by_construction():
    (paper,) = (paper for paper in load_papers(FOLDER) if paper.tables)
    own = {("IMDB", "val #"), ("Amzn", "val #"), ("Yelp", "val #")}
    own |= {("Multi30k", "vocab size"), ("IWSLT14", "vocab size")}
    for entry in paper.tables.entries:
        chosen = entry.table == "9" and (entry.dataset, entry.quantity) in own
        tau = entry.table in ("3", "4") and entry.quantity == "A_baseline"
        assert bool(entry.by_construction) == (chosen or tau), entry
        judged = any(
            claim.judge and claim.published and claim.published.entries == 1 and claim.published.reference
            and claim.published.reference.covers(entry)
            for claim in paper.claims
        )  # fmt: skip
        assert not (judged and entry.by_construction), entry


def test_what_a_row_would_take_is_what_the_notes_say():
    (paper,) = (paper for paper in load_papers(FOLDER) if paper.tables)
    notes = (FOLDER.parent / "book" / "reproduction_notes.md").read_text(encoding="utf-8")
    noted = dict(re.findall(r"^\| `(\w+)` \|.*\| 3 of each \| ([\d.]+) \|$", notes, re.MULTILINE))
    names = {"twenty_newsgroups": "20 NG", "amazon": "Amzn", "imdb": "IMDB", "yelp": "Yelp"}
    names |= {"iwslt14_de_en": "IWSLT14"}
    told = {(entry.dataset, entry.not_run) for entry in paper.tables.entries if entry.not_run}
    assert told == {
        (names[name], f"{hours} hours of one core") for name, hours in noted.items() if name in names
    }
    for entry in paper.tables.entries:
        everywhere = entry.table != "9" and (entry.dataset in names.values())
        assert not everywhere or entry.not_run, entry


def test_a_claim_is_read(tmp_path):
    (claim,) = load_claims(write(tmp_path, CLAIM | {"says": "Some\n  thing. "}), KNOWN)
    assert (claim.id, claim.paper, claim.says, claim.judge) == ("a-claim", "p", "Some thing.", Trend(1))
    assert (claim.keys, claim.profiles) == (("spearman",), ("quick", "paper"))


def test_a_claim_may_say_why_it_is_not_judged(tmp_path):
    told = {"id": "b", "place": "x", "says": "y"}
    write(tmp_path, told | {"not_run": "Not\nyet."}, told | {"id": "c", "cannot_be_run": "No data."})
    assert [(claim.reason, claim.impossible) for claim in load_claims(tmp_path, KNOWN)] == [
        ("Not yet.", False),
        ("No data.", True),
    ]


def test_a_tolerance_takes_its_number_from_the_published_table(tmp_path):
    (tmp_path / "t.csv").write_text(CSV, encoding="utf-8")
    published = {"table": 2, "dataset": "IMDB", "quantity": "xi"}
    claim = CLAIM | {"published": published, "judge": {"kind": "tolerance", "absolute": 1}}
    write(tmp_path, claim, csv="t.csv", tables={2: "two"})
    (read,) = load_claims(tmp_path, KNOWN)
    assert read.judge == Tolerance(87.0, 1.0)
    write(tmp_path, claim | {"published": {"table": 2, "dataset": "IMDB"}}, csv="t.csv")
    with pytest.raises(BadInput, match="claim a-claim: a tolerance needs one published number"):
        load_claims(tmp_path, KNOWN)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (without("judge", "keys"), "claim a-claim: missing keys, judge; .*not_run"),
        (without("says"), "claim a-claim: missing says"),
        (without("id"), "claim number 1: missing id"),
        ("text", "claim number 1: expected fields .* got str"),
        (CLAIM | {"judge": {"kind": "trnd"}}, "claim a-claim: no judge kind 'trnd'; did you mean 'trend'"),
        (
            CLAIM | {"experiment": "temporal_shares"},
            "a-claim: no experiment .* did you mean 'temporal_share'",
        ),
        (CLAIM | {"profiles": ["papers"]}, "a-claim: no profile 'papers'; did you mean 'paper'"),
        (CLAIM | {"profile": "paper"}, "a-claim: no field 'profile'; did you mean 'profiles'"),
        (CLAIM | {"keys": "spearman"}, "a-claim: keys 'spearman': expected a list"),
        (CLAIM | {"keys": ["a b"]}, "a-claim: key 'a b': expected names joined by dots"),
        (CLAIM | {"judge": {"kind": "order"}}, "a-claim: 1 keys for an order; it takes two"),
        (CLAIM | {"not_run": "why"}, "a-claim: 'not_run' excludes experiment, keys, judge, profiles"),
        (CLAIM | {"id": "A claim"}, "id 'A claim' has other characters"),
        (CLAIM | {"id": 7}, "'id' is 7, expected some text"),
        (CLAIM | {"published": "53"}, "published '53' is neither a number"),
        (CLAIM | {"published": {"table": 2}}, "refers to a table, but the file names no `csv`"),
    ],
)
def test_a_claim_that_cannot_be_used(tmp_path, claim, message):
    with pytest.raises(BadInput, match=message):
        load_claims(write(tmp_path, claim), KNOWN)


def test_an_id_used_twice_names_both_files(tmp_path):
    write(tmp_path, CLAIM, name="one.yaml")
    write(tmp_path, CLAIM, name="two.yaml")
    with pytest.raises(BadInput, match=r"'a-claim' is used twice \(one.yaml and two.yaml\)"):
        load_claims(tmp_path, KNOWN)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"claims: [", "p.yaml cannot be read"),
        (b"\xff", "cannot be read"),
        (b"paper: p", "p.yaml: missing title"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, content, message):
    (tmp_path / "p.yaml").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        load_claims(tmp_path, KNOWN)


def test_a_folder_without_claims(tmp_path):
    with pytest.raises(BadInput, match="no claims in"):
        load_claims(tmp_path, KNOWN)


def test_references_into_the_tables(tmp_path):
    (tmp_path / "t.csv").write_text(CSV, encoding="utf-8")
    rule = {"dataset": ["SST"], "reason": "data: not here"}
    rules = {"unavailable": [rule], "not_run": [rule, rule | {"reason": "x"}]}
    tables = read_tables(tmp_path / "t.csv", {2: "two"}, rules)
    assert [entry.unavailable for entry in tables.entries] == ["", "", "data: not here"]
    assert [entry.not_run for entry in tables.entries] == ["", "", "data: not here"]  # the first that matches
    assert tables.published(Reference("2", "IMDB", "xi")).value == 87.0
    odd = tables.published(Reference("2", "IMDB", "size"))
    assert (odd.value, odd.text) == (None, "(2, 3)")
    assert tables.published(Reference("2", quantity="xi")).entries == 2
    with pytest.raises(UnknownName, match="no dataset in table 2 'IMBD'; did you mean 'IMDB'"):
        tables.published(Reference("2", "IMBD"))
    with pytest.raises(UnknownName, match="no table '3'"):
        tables.published(Reference("3"))
    with pytest.raises(BadInput, match="empty corner"):
        tables.published(Reference("2", "SST", "size"))


@pytest.mark.parametrize(
    ("content", "titles", "rules", "message"),
    [
        (CSV.replace("note", "remark"), {}, [], "expected the columns table, dataset"),
        (CSV + "2,SST,xi,79,\n", {}, [], r"t.csv, line 5: 2, SST, xi is already on line 4"),
        (CSV + "2,SST\n", {}, [], "in every row"),
        (CSV, {3: "three"}, [], "no table '3'"),
        (CSV, {}, [{"dataset": "SSTs", "reason": "r"}], "no number matches the rule with the reason 'r'"),
        (CSV, {}, [{"reason": "r"}], "expected a reason and at least one"),
        (CSV, {}, [{"data": "SST", "reason": "r"}], "did you mean 'dataset'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, content, titles, rules, message):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read_tables(tmp_path / "t.csv", titles, {"unavailable": rules})
