"""``tl2npu lsp``: the migration in an editor.

``look`` says what an editor wants to know of a text and ``edits`` how one text becomes another, both without any
protocol. ``worker`` runs ``look`` in a process of its own, so that nobody waits for it while typing; ``protocol`` says
things in the words of the Language Server Protocol; ``server`` answers the editor. The last two need the extra ``lsp``.
"""
