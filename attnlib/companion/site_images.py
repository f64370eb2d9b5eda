"""Images of an executed notebook, brought to what Jupyter Book reads: one a cell, described there."""

from copy import deepcopy

from nbformat import NotebookNode

from attnlib.errors import BadInput

IMAGE_TYPES = ("image/svg+xml", "image/png", "image/jpeg")
# What a cell's image output may say about itself, and where Jupyter Book looks for it.
FROM_OUTPUT = {"alt": "image", "caption": "figure", "name": "figure"}


def one_image_each(cell: NotebookNode) -> list[NotebookNode]:
    """The cell; or, where it shows several images, cells of one image each, the source with the first.

    Alternative text belongs to a cell in Jupyter Book, so a loop over figures would have one for all.
    """
    outputs = cell.get("outputs", [])
    if sum(map(_is_image, outputs)) < 2:
        return [cell]
    pieces: list[NotebookNode] = []
    for output in outputs:
        if not pieces or (_is_image(output) and any(map(_is_image, pieces[-1].outputs))):
            piece = deepcopy(cell)
            piece.outputs = []
            if pieces:
                piece.source = "# one more figure of the cell above"  # a cell without source is skipped
                piece["id"] = f"{cell['id']}-{len(pieces)}"
                piece.metadata.tags = [*dict.fromkeys([*cell.metadata.get("tags", []), "remove-input"])]
            pieces.append(piece)
        pieces[-1].outputs.append(output)
    return pieces


def _is_image(output: NotebookNode) -> bool:
    return any(kind in output.get("data", {}) for kind in IMAGE_TYPES)


def describe_image(figure: str, number: int, cell: NotebookNode) -> bool:
    """Move what an image output says of itself to where Jupyter Book reads it; say whether there is one."""
    images = [output for output in cell.outputs if _is_image(output)]
    if not images:
        return False
    metadata = images[0].get("metadata", {})
    said = dict(metadata)
    for kind in IMAGE_TYPES:
        said |= metadata.get(kind, {})
    options = cell.metadata.setdefault("mystnb", {})
    for key, place in FROM_OUTPUT.items():
        if str(said.get(key, "")).strip():
            options.setdefault(place, {})[key] = str(said[key]).strip()
    if not str(options.get("image", {}).get("alt", "")).strip():
        raise BadInput(
            f"{figure}, cell {number} shows an image without alternative text; display it with "
            'metadata={"image/svg+xml": {"alt": "what the figure shows"}} or set mystnb.image.alt on the cell'
        )
    return True
