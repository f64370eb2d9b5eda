"""Write the book's drawings to ``book/_drawings``, where they are committed."""

from companion.book.drawings import FOLDER, drawings
from companion.book.project import find_root


def main() -> None:
    folder = find_root() / FOLDER
    folder.mkdir(exist_ok=True)
    for name, drawing in drawings().items():
        (folder / f"{name}.svg").write_text(drawing.svg(), encoding="utf-8")
    print(folder)


if __name__ == "__main__":
    main()
