"""Clear away what a crash left behind before a training goes on."""

import hashlib
import json
import logging
from pathlib import Path

log = logging.getLogger(__name__)


def discard_unsound(folder: Path) -> list[Path]:
    """Delete the checkpoints of a folder that are damaged or incomplete, and say so.

    One that stayed would count among the newest when old ones are dropped, and push a sound one out.

    Returns:
        the checkpoints deleted.
    """
    deleted = []
    for path in sorted(folder.glob("step-*.safetensors")):
        if not _sound(path):
            log.warning("checkpoint %s is corrupt or incomplete; going on from the one before", path.name)
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink()
            deleted.append(path)
    return deleted


def _sound(path: Path) -> bool:
    try:
        side = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return side["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() and {"step", "records"} <= set(
            side
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
