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

import base64
import hashlib
import json
import shlex
import sys
from pathlib import Path

# Snakemake reads values as YAML, in which 1e3 is a number and a quote goes, and a cluster's shell would run what
# is in them: they are taken as they were said, and go to jobs in letters and digits alone.
SAID = workflow.config_settings
if isinstance(SAID.config_args, list):
    config.update(entry.split("=", 1) for entry in SAID.config_args)
if "encoded" in config:
    config.update(json.loads(base64.b64decode(config["encoded"])))
config.update({name: str(value) for name, value in config.items()})
SAID.config_args = ["encoded=" + base64.b64encode(json.dumps(config).encode()).decode()]

try:
    OPTIONS = shlex.split(config.get("options", ""))
except ValueError as error:
    sys.exit(f"options={config['options']}: {error}")

TEXT = ["model", "source", *([] if "--generate" in OPTIONS else ["target"])]
LACKING = [name for name in ("out", "shards") if name not in config]
LACKING += [] if "traces" in config else [name for name in TEXT if name not in config]
if LACKING:
    sys.exit(f"say --config {' '.join(f'{name}=…' for name in LACKING)}; see the head of {workflow.main_snakefile}")

SHELLS = set("'\"$`\\\n")  # what a cluster's shell would take for its own
if set("{}") & set(config["out"]):
    sys.exit(f"out={config['out']}: Snakemake takes braces for wildcards; choose another name")
if workflow.non_local_exec and SHELLS & set(config["out"]):
    sys.exit(f"out={config['out']}: a cluster's shell would read it; choose a name without quotes, $ and \\")

if not config["shards"].isdecimal():
    sys.exit(f"shards={config['shards']}: expected how many, as in shards=8")

OUT, SHARDS = Path(config["out"]), int(config["shards"])
INPUTS = [name for name in ("model", "source", "target", "traces") if name in config]
COMMAND = " ".join(
    [
        shlex.quote(sys.executable), "-m attnlib.cli analyse",
        *(f"--{name} {shlex.quote(config[name])}" for name in (*INPUTS, "out", "shards")),
        shlex.join(OPTIONS),
    ]
).replace("{", "{{").replace("}", "}}")  # as Snakemake has it, of names with braces in them


def watched() -> list[Path]:
    """The files that the numbers depend on."""
    found = [Path(config[name]) for name in ("source", "target") if name in config]
    for name, pattern in (("model", "*"), ("traces", "*.safetensors")):
        folder = Path(config.get(name, ""))
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
    input: [str(path) for path in WATCHED if not (SHELLS | set("{}")) & set(str(path))]  # the stamp has them all
    output: touch(done("fit"))
    params: states=STAMP
    shell: COMMAND + " --stage fit --shard {wildcards.shard}"


rule judge:
    input: expand(done("fit"), shard=range(SHARDS))
    output: touch(done("judge"))
    shell: COMMAND + " --stage judge --shard {wildcards.shard}"
