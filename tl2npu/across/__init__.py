"""What a file takes from other modules of its repository, and who elsewhere uses what it defines.

Nothing is imported or executed: modules are found by the rules of ``import`` and read with ``ast``.
"""
