"""Jupyter notebooks: the code of their cells as one module, and back into the very same JSON text.

``spans`` finds where values stand in JSON text, ``strings`` rewrites the text of a cell there, ``magics`` takes what is
not Python out of a cell and puts it back, ``book`` puts the three together.
"""

from tl2npu.source.notebook.book import Cell, Notebook, NotebookSkipped, is_notebook

__all__ = ["Cell", "Notebook", "NotebookSkipped", "is_notebook"]
