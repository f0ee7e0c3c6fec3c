"""Questions with the packages that answer them, from public repositories: to learn and to test.

A folder has a clone of each repository below, by the name after the slash. Other commits may have
other questions.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adapter import document
from fit import lines

from capdex.search.document import Document

MOST: Final = 3_000  # questions of one set
# Repository, commit, licence. The last two say nothing of a licence: they test, and teach nothing.
SOURCES: Final = (
    ("ShishirPatil/gorilla", "6ea57973c7a6097fd7c5915698c54c17c5b1b6c8", "Apache-2.0"),
    ("HowieHwong/MetaTool", "35e81bb7576826e980c80fed8f8c0a2b4a1e6fbb", "MIT"),
    ("fairyshine/Seal-Tools", "ce753ecd60ed08dd376984035de531ab8421f1c6", "Apache-2.0"),
    ("tangqiaoyu/ToolAlpaca", "189069998d64a7baf1b4a1c3c4b2e75eb9d05532", "Apache-2.0"),
    ("ACEBench/ACEBench", "e6db74b735ead22c24f27367606a9408573b848f", "MIT"),
    ("tldr-pages/tldr", "08e345f42639f67d99282813247ac670dc6e87cb", "CC-BY-4.0"),
    ("clinc/oos-eval", "828f8093932c8fe6ca7936c3d2e52903b1c523de", "CC-BY-3.0"),
    ("PolyAI-LDN/task-specific-datasets", "57ec275d8078af65b7731c2a98be812d844a6d6b", "CC-BY-4.0"),
    ("JoeYing1019/UltraTool", "9f3793c3f9396b840631833ef76fe4f20c057c39", "not said"),
    ("quchangle1/COLT", "bbec292c38cabe3fbae098f50cc31b2e9f7e8fca", "not said"),
)


@dataclass(frozen=True)
class Labelled:
    """Packages, and questions with the names of those that answer them.

    Sets of one `family` share packages or an origin: no set of a family may teach what is measured
    on another of it.
    """

    family: str
    documents: list[Document]
    asked: list[tuple[str, set[str]]]


def given(folder: Path, family: str) -> Labelled:
    """Return a set as fit.py takes it."""
    documents = [document(x) for x in lines(folder / "corpus.jsonl.gz")]
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, name, grade = line.split("\t")
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(name)
    queries = lines(folder / "queries.jsonl.gz")
    asked = [(x["text"], relevant[x["id"]]) for x in queries if x["id"] in relevant]
    return Labelled(family, documents, asked)


def teaching(clones: Path, sets: dict[str, Labelled]) -> dict[str, Labelled]:
    """Return the sets to learn from, whose questions are in none of the given `sets`."""
    known = {text.strip().lower() for x in sets.values() for text, _ in x.asked}
    found = {
        "more of metatool": _metatool(clones / "MetaTool", sets["metatool"]),
        "more of sealtools": _sealtools(clones / "Seal-Tools", sets["sealtools"]),
        "apibench": _apibench(clones / "gorilla"),
        "toolalpaca": _toolalpaca(clones / "ToolAlpaca"),
        "clinc": _clinc(clones / "oos-eval"),
        "banking": _banking(clones / "task-specific-datasets"),
    }
    found |= {f"acebench {x}": _acebench(clones / "ACEBench", x) for x in ("en", "zh")}
    found |= {f"tldr {x}": _tldr(clones / "tldr", x) for x in ("", "zh", "ko", "es")}
    for name, one in found.items():
        asked = [x for x in one.asked if x[0].strip().lower() not in known]
        random.Random(7).shuffle(asked)  # noqa: S311 - a sample
        found[name] = Labelled(one.family, one.documents, asked[:MOST])
    return found


def testing(clones: Path) -> dict[str, Labelled]:
    """Return sets that nothing is learnt from: in two languages, between them, and of endpoints."""
    english, chinese = (_ultratool(clones / "UltraTool", x) for x in ("English", "Chinese"))
    asked = [(text, names & {x.name for x in english.documents}) for text, names in chinese.asked]
    between = Labelled("ultratool", english.documents, [x for x in asked if x[1]])
    lens = _toollens(clones / "COLT")
    return {
        "ultratool": english,
        "in Chinese": chinese,
        "Chinese to English": between,
        "toollens": lens,
    }


def _metatool(clone: Path, of: Labelled) -> Labelled:
    names = {x.fields["name"].lower(): x.name for x in of.documents}
    with (clone / "dataset/data/all_clean_data.csv").open(encoding="utf-8", newline="") as file:
        rows = [(x["Query"], names.get(x["Tool"].lower())) for x in csv.DictReader(file)]
    return Labelled(of.family, of.documents, [(text, {name}) for text, name in rows if name])


def _sealtools(clone: Path, of: Labelled) -> Labelled:
    names = {x.fields["name"]: x.name for x in of.documents}
    asked = []
    for part in ("dev", "test_in_domain", "test_out_domain"):
        for line in _json_lines(clone / f"Seal-Tools_Dataset/{part}.jsonl"):
            called = {names[x["api"]] for x in line["calling"] if x["api"] in names}
            asked.append((line["query"], called))
    return Labelled(of.family, of.documents, [x for x in asked if x[1]])


_INSTRUCTION: Final = re.compile(
    r"#*\s*'?Instruction'?:\s*(.*?)\s*(?:\n?#*\s*Output|,\s*'Output')", re.DOTALL
)


def _apibench(clone: Path) -> Labelled:
    """Models of three hubs; each question has the one that was meant, though others may do."""
    documents: dict[str, Document] = {}
    asked = []
    for part in ("torchhub_train", "torchhub_eval", "tensorflow_eval", "huggingface_eval"):
        for line in _json_lines(clone / f"data/apibench/{part}.json"):
            api = line["api_data"]
            name = f"{part.split('_')[0]}:{api['api_name']}"
            about = f"{api.get('functionality', '')}. {api.get('description', '')}"[:650]
            row = {
                "id": name,
                "name": api["api_name"],
                "description": about,
                "category": api.get("domain"),
            }
            documents.setdefault(name, document(row))
            if said := _INSTRUCTION.search(line["code"]):
                asked.append((said.group(1).strip(" '\"\n"), {name}))
    return Labelled("apibench", list(documents.values()), asked)


def _toolalpaca(clone: Path) -> Labelled:
    rows: dict[str, dict[str, Any]] = {}
    for api in json.loads((clone / "data/public_apis.json").read_text("utf-8"))["entries"]:
        about = {"description": api["Description"], "category": api["Category"]}
        rows.setdefault(api["API"], {"id": api["API"], "name": api["API"], **about})
    asked = []
    for part in ("eval_simulated", "eval_real"):
        for api in json.loads((clone / f"data/{part}.json").read_text("utf-8")):
            row = rows.setdefault(
                api["Name"],
                {"id": api["Name"], "name": api["Name"], "description": api["Description"]},
            )
            row["tools"] = [
                {"name": name, "description": text.split("\nParameters")[0][:600]}
                for name, text in api["Function_Description"].items()
                if name != "components"
            ]
            asked += [(text, {api["Name"]}) for text in api["Instructions"]]
    return Labelled("toolalpaca", [document(x) for x in rows.values()], asked)


_SPEAKER: Final = re.compile(r"(?:user|system|用户)\s*[:：]")


def _acebench(clone: Path, language: str) -> Labelled:
    """Functions; of a talk the first words of the user are the question."""
    documents: dict[str, Document] = {}
    asked = []
    for path in sorted((clone / f"data_all/data_{language}").glob("data_normal_*.json")):
        called = {
            x["id"]: x["ground_truth"]
            for x in _json_lines(path.with_name("possible_answer") / path.name)
        }
        for line in _json_lines(path):
            for tool in line["function"]:
                about = {"description": tool["description"]}
                parts = [{"name": tool["name"], **about, "parameters": tool.get("parameters")}]
                row = {"id": tool["name"], "name": tool["name"], "tools": parts}
                documents.setdefault(tool["name"], document(row))
            said = next(x.strip() for x in _SPEAKER.split(line["question"]) if x.strip())
            answer = called.get(line["id"])
            calls = [x for x in (answer if isinstance(answer, list) else [answer]) if x]
            names = {x if x in documents else re.sub(r"_\d+$", "", x) for one in calls for x in one}
            asked.append((said, names & documents.keys()))
    return Labelled("acebench", list(documents.values()), [x for x in asked if x[1]])


def _tldr(clone: Path, language: str) -> Labelled:
    """Commands as they are described in English; the questions are what examples of them do."""
    documents: dict[str, Document] = {}
    asked: dict[str, set[str]] = {}
    for path in sorted(clone.glob("pages/*/*.md")):
        text = path.read_text("utf-8").replace("`", "")
        about = " ".join(re.findall(r"^> ((?!.*http|See also).*)$", text, re.MULTILINE))
        other = clone / f"pages.{language}" / path.parent.name / path.name if language else path
        if path.stem in documents or not about or "alias of" in about or not other.exists():
            continue
        name = text.split("\n")[0].removeprefix("# ")
        row = {"id": path.stem, "name": name, "description": about}
        documents[path.stem] = document(row)
        for said in re.findall(r"^- (.*?)[:：]?$", other.read_text("utf-8"), re.MULTILINE):
            said = re.sub(r"\[(\w+)\]", r"\1", said.replace("`", ""))  # [c]reate
            if not re.search(r"version|help|帮助|版本|\{\{", said) and len(said) > 5:
                asked.setdefault(said, set()).add(path.stem)
    least = 4 if language in ("", "es") else 1
    once = [x for x in asked.items() if len(x[1]) == 1 and len(x[0].split()) >= least]
    return Labelled("tldr", list(documents.values()), once)


def _clinc(clone: Path) -> Labelled:
    """What people ask an assistant for; the names of 150 things that it does are the packages."""
    domains = json.loads((clone / "data/domains.json").read_text("utf-8"))
    documents = [
        document({"id": name, "name": name.replace("_", " "), "category": domain.replace("_", " ")})
        for domain, names in domains.items()
        for name in names
    ]
    names = {x.name for x in documents}
    rows = json.loads((clone / "data/data_full.json").read_text("utf-8"))
    asked = [(text, {name}) for text, name in rows["train"] + rows["test"] if name in names]
    return Labelled("clinc", documents, asked)


def _banking(clone: Path) -> Labelled:
    with (clone / "banking_data/train.csv").open(encoding="utf-8", newline="") as file:
        asked = [(x["text"], {x["category"]}) for x in csv.DictReader(file)]
    names = sorted({name for _, answers in asked for name in answers})
    documents = [document({"id": x, "name": x.replace("_", " ")}) for x in names]
    return Labelled("banking", documents, asked)


def _ultratool(clone: Path, language: str) -> Labelled:
    documents: dict[str, Document] = {}
    asked = []
    for line in _json_lines(clone / f"data/{language}-dataset/test.json"):
        used = {str(step["tool"]).split("(")[0].strip() for step in line["plan"]}
        for tool in line["tools"]:
            parts = [{"name": tool["name"], "parameters": tool.get("arguments")}]
            row = {
                "id": tool["name"],
                "name": tool["name"],
                "description": tool["description"],
                "tools": parts,
            }
            documents.setdefault(tool["name"], document(row))
        asked.append((line["question"].strip(), used & documents.keys()))
    return Labelled("ultratool", list(documents.values()), [x for x in asked if x[1]])


_ENDPOINT: Final = re.compile(
    r"category_name:(.*?), tool_name:(.*?), api_name:(.*?), api_description:(.*?), "
    r"required_params: (\[.*?\]), optional_params: (\[.*?\]), return_schema",
    re.DOTALL,
)


def _toollens(clone: Path) -> Labelled:
    folder = clone / "datasets/ToolLens"
    documents = []
    for line in _json_lines(folder / "corpus.jsonl"):
        if not (parts := _ENDPOINT.match(line["text"])):
            continue
        category, tool, api, about, *_ = parts.groups()
        tools = [{"name": api, "description": about}]
        documents.append(
            document({"id": line["_id"], "name": tool, "category": category, "tools": tools})
        )
    relevant: dict[str, set[str]] = {}
    for part in ("train", "test"):
        for row in (folder / f"qrels/{part}.tsv").read_text("utf-8").splitlines()[1:]:
            relevant.setdefault(row.split("\t")[0], set()).add(row.split("\t")[1])
    asked = [
        (x["text"], relevant[x["_id"]])
        for x in _json_lines(folder / "queries.jsonl")
        if x["_id"] in relevant
    ]
    random.Random(7).shuffle(asked)  # noqa: S311 - a sample
    return Labelled("toolbench", documents, asked[:1_000])


def _json_lines(path: Path) -> Iterable[dict[str, Any]]:
    yield from map(json.loads, path.read_text("utf-8").splitlines())
