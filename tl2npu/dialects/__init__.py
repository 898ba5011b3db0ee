"""Catalogues of the TileLang dialects: what each operator is called, takes, reads, writes, and where it runs.

Pure data, free of syntax trees, so that every other part of the program may read it:

- ``catalogue``: the dataclasses that describe one operator;
- ``ascend``: the operators of Ascend TileLang (Expert and Developer mode) and ``lookup``;
- ``compiler``: what one version of the Ascend compiler does and cannot do;
- ``pass_configs``: the ``pass_configs`` keys.
"""
