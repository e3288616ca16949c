#!/usr/bin/env python3
"""Far memory and hints from Python: struct hl_runtime of hinterland/hint.h, by ctypes.

HINTERLAND_LOCAL=16M region.py [LIBRARY]     libhinterland.so, unless it is where the linker looks
"""
import ctypes
import os
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p


class Region(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("inside", c_uint64)]


class Options(Structure):
    _fields_ = [("share", c_size_t), ("rdahead", c_int32), ("policy", c_char_p), ("device", c_char_p)]


class Runtime(Structure):
    _fields_ = [("abi_version", c_uint32), ("reserved", c_uint32), ("base", c_void_p), ("size", c_size_t),
                ("map", c_void_p), ("hint", CFUNCTYPE(None, c_void_p, c_size_t, c_int32, c_uint32)),
                *((name, CFUNCTYPE(c_int, c_void_p, c_size_t)) for name in ("pin", "unpin", "discard")),
                ("cold", CFUNCTYPE(None, c_void_p, c_size_t)),
                ("region_create", CFUNCTYPE(c_int, POINTER(Region), c_size_t, POINTER(Options))),
                ("region_destroy", CFUNCTYPE(c_int, POINTER(Region))), ("region_error", CFUNCTYPE(c_char_p)),
                ("region_create_sized", CFUNCTYPE(c_int, POINTER(Region), c_size_t, POINTER(Options), c_size_t))]


SHARE_COMMON, RDAHEAD_DEFAULT = ctypes.c_size_t(-1).value, -1


def main():
    runtime = Runtime.in_dll(ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libhinterland.so"), "hl_runtime")
    region, options = Region(), Options(SHARE_COMMON, RDAHEAD_DEFAULT, None, None)  # the program's policy and device
    error = runtime.region_create_sized(region, 64 << 20, options, ctypes.sizeof(options))
    if error:
        sys.exit(f"no region: {os.strerror(error)} ({runtime.region_error().decode()})")
    table = memoryview((ctypes.c_uint64 * (region.size // 8)).from_address(region.data)).cast("B").cast("Q")
    for i in range(0, len(table), 512):  # a word of each page
        table[i] = i
    for at in range(0, region.size, 1 << 20):
        runtime.hint(region.data + at, 1 << 20, 0, 0)  # the next MiB, with one call
        assert all(table[i] == i for i in range(at // 8, (at + (1 << 20)) // 8, 512))
    print(sum(table[i] for i in range(0, len(table), 512)))
    table.release()
    return runtime.region_destroy(region)


if __name__ == "__main__":
    sys.exit(main())
