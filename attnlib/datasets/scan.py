"""SCAN: commands and their actions, as published. The task `scan` makes the same pairs from the grammar."""

from attnlib.datasets.base import Dataset, files_at

_RAW = "https://raw.githubusercontent.com/brendenlake/SCAN/c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f/"
_SHA256 = {
    "tasks.txt": "d824c7d9e9149ba497e25f701981dac79954e04bf670d22e5c209f076ac6c89f",
    "length_split/tasks_test_length.txt": "0760752ed34a75116ae11dcc1ee17526b7500060da1366540730fa24894d7db3",
    "length_split/tasks_train_length.txt": "b034212dc7cf87ce62f3a067dd6ad49c4d5cd18d51d615d13825516bcb1ebbc2",
    "simple_split/tasks_test_simple.txt": "1fe1c8f5a19d0dc40e41bab94278f45f66f3dc415a978bd29855a23440610fc6",
    "simple_split/tasks_train_simple.txt": "941bb8a088c5f53ceff12fde902dc008933cf0c4203cc672c47b5f79d73262dd",
}

DATASET = Dataset(
    name="scan",
    title="SCAN (Lake & Baroni 2018)",
    folder="scan",
    files=files_at(_RAW, _SHA256),
    home="https://github.com/brendenlake/SCAN",
    licence="BSD",
    redistribution="allowed",
    note="20,910 lines `IN: … OUT: …`; the simple and the length split of the paper.",
)
