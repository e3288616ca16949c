// The entries of guards in assembly (guard_entries.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
#define HL_DECLARED(name_) __attribute__((visibility("hidden"))) void name_()
HL_DECLARED(hl_guard_read_1);
HL_DECLARED(hl_guard_read_2);
HL_DECLARED(hl_guard_read_4);
HL_DECLARED(hl_guard_read_8);
HL_DECLARED(hl_guard_write_1);
HL_DECLARED(hl_guard_write_2);
HL_DECLARED(hl_guard_write_4);
HL_DECLARED(hl_guard_write_8);
#undef HL_DECLARED
__attribute__((visibility("hidden"))) void hl_guard_read_bytes(void* to, const void* in_window, std::size_t bytes);
__attribute__((visibility("hidden"))) void hl_guard_write_bytes(void* in_window, const void* from, std::size_t bytes);
__attribute__((visibility("hidden"))) void hl_guard_fill(void* in_window, int byte, std::size_t bytes);

// Where the thread's restartable sequence is named, from its thread pointer: rseq_cs of struct rseq.
extern __attribute__((visibility("hidden"))) std::intptr_t hl_guard_sequence_at;
}
