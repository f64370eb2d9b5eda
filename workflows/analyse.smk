# A corpus in shards: the first reading of every shard, the second by all of the first, then the report.
#
#   snakemake --snakefile workflows/analyse.smk --cores 2 \
#     --config model=FOLDER source=a.txt target=b.txt out=report shards=8 options="--layers 0-3 --ignore-special"
#
# With `--executor slurm --jobs 8` the shards are jobs of a cluster. A shard that is cut off goes on where it was
# left; give the same command again. `options` are those of `attnlib analyse`.

import shlex
import sys
from pathlib import Path

LACKING = [name for name in ("out", "shards") if name not in config]
LACKING += [] if "traces" in config else [name for name in ("model", "source", "target") if name not in config]
if LACKING:
    sys.exit(f"say --config {' '.join(f'{name}=…' for name in LACKING)}; see the head of {workflow.main_snakefile}")

OUT, SHARDS = Path(config["out"]), int(config["shards"])
INPUTS = [name for name in ("model", "source", "target", "traces") if name in config]
COMMAND = " ".join(
    [
        shlex.quote(sys.executable), "-m attnlib.cli analyse",
        *(f"--{name} {shlex.quote(str(config[name]))}" for name in (*INPUTS, "out", "shards")),
        str(config.get("options", "")),
    ]
)


rule report:
    input: expand(f"{OUT}/parts/judge-{{shard}}-of-{SHARDS}.done", shard=range(SHARDS))
    output: f"{OUT}/index.html"
    shell: f"{COMMAND} --stage report"


# The parts themselves are no outputs: what a job left half done must outlast it.
rule fit:
    output: touch(f"{OUT}/parts/fit-{{shard}}-of-{SHARDS}.done")
    shell: f"{COMMAND} --stage fit --shard {{wildcards.shard}}"


rule judge:
    input: expand(f"{OUT}/parts/fit-{{shard}}-of-{SHARDS}.done", shard=range(SHARDS))
    output: touch(f"{OUT}/parts/judge-{{shard}}-of-{SHARDS}.done")
    shell: f"{COMMAND} --stage judge --shard {{wildcards.shard}}"
