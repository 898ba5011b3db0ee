"""The tool itself, and what makes a kernel slow: TL9xx."""

TABLE = """
TL901 unparsable-file error: fix the file: it must be valid Python in its declared encoding
TL902 unreadable-kernel error: write the statement in plain TileLang, with the original tensor instead of a view
TL903 unknown-helper error: write what it stands for in its place: the statements of the helper, or the original tile
TL904 unused-suppression warning: remove the comment
TL905 assumed-even-extent info display-only: assert in the factory that it is even, as in `assert block_M % 2 == 0`
TL906 unverified-kernel warning: pass a call with `--args 'factory(name=value)'`, or a script that launches the kernel
TL907 changed-result error: keep the old kernel, and compare the statements that write the named tensor
TL908 faulty-run error: fix the named access or synchronisation; `tl2npu run` lists all of them; to run the new kernel,
    write it with `tl2npu migrate - < old.py > new.py`
TL909 readings-differ error: use `threads=1`, or write the statement so that the compiler can split it by rows
TL910 failed-own-check error: run the script with `tl2npu run` to see which check fails
TL911 exhausted-time error: raise `--timeout`, or use smaller shapes with `--args` and `--shrink`
TL912 missing-backend error: `tl2npu doctor` lists what is missing and how to mend it; `--backend sim` needs nothing
TL913 kernel-in-foreign-cell warning: migrate the file that the cell writes, or make it a Python cell
TL914 change-in-imported-code error: inline the macro in the kernel, or change the macro and all its users by hand
TL915 caller-in-another-file error: pass all files that call the kernel to one run, or change the kernel and its calls
    by hand
TL923 untraced-language error: import the language in this file: `import tilelang.language as T`
TL924 kernel-in-string error: move the kernel to a Python file, and import it
TL925 overridden-pass-config warning: compare the speed; `--pass-config-policy keep` does not migrate such kernels
TL930 rejected-by-the-compiler error: change the statement that the compiler names; `tl2npu check` finds most limits
    without it
TL931 compiler-died error: make tiles smaller, or leave statements out until it compiles, and report it to
    tilelang-ascend
TL932 name-that-the-compiler-lacks error: remove the name from the code around the kernels, or import it only where
    TileLang for GPUs is installed
TL933 rejected-generated-program error: compare the line of the generated program with the kernel, and report it to
    tilelang-ascend
TL940 device-fault error: read the device log; `--sanitize memcheck` finds accesses out of bounds
TL941 device-hang error: look for cores that wait for each other; `--sanitize synccheck` finds flags without a partner
TL942 compilation-failed error: see what the compiler says with `--backend compile`
TL943 runs-differ error: run it with `--sanitize racecheck`, and look at the synchronisation of the tensor that is named
TL944 not-a-number error: look for data that is read before it is written, and for divisions and logarithms of 0
TL945 sanitizer-finding error: correct the access that msSanitizer names
TL946 nothing-measured warning: run `msprof op` by hand, and see what it refuses
TL951 slow-tiles info display-only: try these sizes; `tl2npu cost` has the estimate of each pipe
TL952 small-transfers info display-only: use larger tiles, or load several at once, so that a copy moves 16 KB or more
TL953 short-vectors info display-only: write operators on whole tiles, or make rows longer where they are short
TL954 many-blocks info display-only: migrate with `--fixed-core`: as many blocks as there are cores, each with a loop
    over its tasks
TL955 repeated-load info display-only: move the copy in front of the loop
TL956 waiting-cores info display-only: choose sizes for which the loop has stages, or tiles with which both cores have
    as much to do
TL970 values-differ error: report it with the kernel, it is a fault of tl2npu; `--no-self-check` writes the kernel all
    the same
"""
