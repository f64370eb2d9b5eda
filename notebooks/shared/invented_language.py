"""The words of the reordering family with their translations; without torch, for pages that gloss them."""

STAYING_OPENINGS = {"now": "gau", "here": "hyra"}
REVERSING_OPENINGS = {"once": "onga", "there": "thela"}
STAYING_MODIFIERS = {"red": "rakko", "old": "ohto", "big": "bakko", "sly": "sinno"}
SWAPPING_MODIFIERS = {"wild": "wikko", "grey": "grato", "shy": "shimo", "odd": "ommo"}
HEADS = {
    "fox": "fimbo", "owl": "ulufo", "bear": "barbu", "hare": "hobbu", "wolf": "wulmo", "crow": "karru",
    "deer": "dilmo", "toad": "tontu",
}  # fmt: skip
TRANSLATIONS = STAYING_OPENINGS | REVERSING_OPENINGS | STAYING_MODIFIERS | SWAPPING_MODIFIERS | HEADS
