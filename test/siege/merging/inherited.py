"""Runs a command in a process whose equal pages are merged (KSM), as systemd does for MemoryKSM=yes.

inherited.py COMMAND [ARGUMENTS ...]. Exit status: the command's, or 77 where the kernel knows no such thing (before 6.4).
"""
import ctypes
import os
import sys

PR_SET_MEMORY_MERGE = 67

if ctypes.CDLL(None).prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) != 0:
    print("this kernel does not merge the pages of a process")
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
