# A corpus in shards: the first pass over every shard, the second by all of the first, then the report.
#
#   snakemake --snakefile workflows/analyse.smk --cores 2 \
#     --config model=FOLDER source=a.txt target=b.txt out=report shards=8 options="--layers 0-3 --ignore-special"
#
# With `--executor slurm --jobs 8` the shards are jobs of a cluster. A shard that is cut off goes on where it was
# left; give the same command again. `options` are those of `attnlib analyse`.
#
# Where the texts, the model's folder or the traces have changed, all is asked again, and parts of the analysis
# before are refused: another `out`, or `parts` deleted. A model that is named, not a folder, is not watched here.

import hashlib
import shlex
import sys
from pathlib import Path

LACKING = [name for name in ("out", "shards") if name not in config]
LACKING += [] if "traces" in config else [name for name in ("model", "source", "target") if name not in config]
if LACKING:
    sys.exit(f"say --config {' '.join(f'{name}=…' for name in LACKING)}; see the head of {workflow.main_snakefile}")

if set("{}") & set(str(config["out"])):
    sys.exit(f"out={config['out']}: Snakemake takes braces for wildcards; choose another name")

try:
    OPTIONS = shlex.split(str(config.get("options", "")))
except ValueError as error:
    sys.exit(f"options={config['options']}: {error}")

OUT, SHARDS = Path(config["out"]), int(config["shards"])
INPUTS = [name for name in ("model", "source", "target", "traces") if name in config]
COMMAND = " ".join(
    [
        shlex.quote(sys.executable), "-m attnlib.cli analyse",
        *(f"--{name} {shlex.quote(str(config[name]))}" for name in (*INPUTS, "out", "shards")),
        shlex.join(OPTIONS),
    ]
).replace("{", "{{").replace("}", "}}")  # as Snakemake has it, of names with braces in them


def watched() -> list[Path]:
    """The files that the numbers depend on."""
    found = [Path(str(config[name])) for name in ("source", "target") if name in config]
    for name, pattern in (("model", "*"), ("traces", "*.safetensors")):
        folder = Path(str(config.get(name, "")))
        if name in config and folder.is_dir():
            found += sorted(path for path in folder.glob(pattern) if path.is_file())
    return found


def state(path: Path) -> str:
    """What changes with a file, also where another of an earlier date takes its place."""
    return f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" if path.exists() else f"{path} none"


WATCHED = watched()
STATES = repr([*map(state, WATCHED), OPTIONS])
STAMP = hashlib.sha256(STATES.encode()).hexdigest()  # in which no brace is


def done(stage: str) -> str:
    """The mark of a finished part; it lies in the folder of the part, and goes when that is deleted."""
    return f"{OUT}/parts/{stage}-{{shard}}-of-{SHARDS}/done"


rule report:
    input: [expand(done(stage), shard=range(SHARDS)) for stage in ("fit", "judge")]  # it reads parts of both
    output: f"{OUT}/index.html"
    shell: COMMAND + " --stage report"


# The parts themselves are no outputs: what a job left half done must outlast it.
rule fit:
    input: [str(path) for path in WATCHED if not set("{}") & set(str(path))]  # braces would be wildcards
    output: touch(done("fit"))
    params: states=STAMP
    shell: COMMAND + " --stage fit --shard {wildcards.shard}"


rule judge:
    input: expand(done("fit"), shard=range(SHARDS))
    output: touch(done("judge"))
    shell: COMMAND + " --stage judge --shard {wildcards.shard}"
