"""Notebooks of a small checkout."""

from companion.book.project import Figure, Project

HEADER = """---
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A figure

```{code-cell} python3
:tags: [parameters]
profile = "quick"
task = None
```

"""


def write(project: Project, name: str, *cells: str, header: str = HEADER) -> Figure:
    """A notebook in the part ``attend``: its parameters and some cells."""
    path = project.notebooks / "attend" / f"{name}.md"
    text = "\n".join(f"```{{code-cell}} python3\n{cell}\n```\n" for cell in cells)
    path.write_text(header + text, encoding="utf-8")
    return Figure(f"attend/{name}", path)
