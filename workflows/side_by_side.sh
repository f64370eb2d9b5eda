#!/usr/bin/env bash
# Train and measure what a figure still lacks with many processes at once, on a machine that has four packages and a GPU:
#
#     workflows/side_by_side.sh learn/agreement data=twenty_newsgroups 12 --device cuda
#     workflows/side_by_side.sh beyond/transformer_heads task=scan 16 --device cuda
#
# The second word chooses networks: those whose description has it. They are trained on the device and measured there, or on
# the CPU where a measure knows no device. What is interrupted goes on with the same command; answers end in build/answers, from
# where `python -m companion.runs.archive` packs them. Twelve networks of a row share a GPU well; more get in each
# other's way. TensorFloat products are rounded to 10 bits: they are off.
set -euo pipefail
figure=$1 chosen=$2 processes=$3
shift 3
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD OMP_NUM_THREADS=1 NVIDIA_TF32_OVERRIDE=0 PROFILE=${PROFILE:-paper}

lacking() { # specs: of every network, as JSON; keys: of those that are measured
  python3 - "$figure" "$chosen" "$1" <<'PYTHON'
import json, os, sys
from companion.paths import ARCHIVE, MEASUREMENTS
from companion.results.answer import measurements_of_figure
from companion.runs.archive import Archive
from companion.runs.identity import run_id, run_record

figure, chosen, what = sys.argv[1:]
archive = Archive(ARCHIVE, MEASUREMENTS)
lacking = [
    one for one in measurements_of_figure(figure.rpartition("/")[2], os.environ["PROFILE"])
    if chosen in one.spec.setting and archive.get(one) is None
]  # fmt: skip
networks = dict.fromkeys(spec for one in lacking for spec in (one.spec, *one.other_specs))
lines = map(json.dumps, (run_record(spec) for spec in networks)) if what == "specs" else (run_id(one.spec) for one in lacking)
print(*dict.fromkeys(lines), sep="\n")
PYTHON
}

answer() { xargs --no-run-if-empty -d '\n' -n 1 -P "$processes" python3 -m companion.results.answer --profile "$PROFILE" "$@"; }
lacking specs | answer "$@"
lacking keys | answer "$@" || lacking keys | answer
