; Must not touch: the stack, the program's variables, what changes memory in one step, and functions that are cold or asked
; for it. They are right without a guard.
; RUN: opt -passes=hinterland-guards -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-guards -pass-remarks-missed=hinterland -disable-output < %s 2>&1 | FileCheck --check-prefix=SAID %s
target triple = "x86_64-pc-linux-gnu"
@table = global [16 x i64] zeroinitializer
@mine = thread_local global i64 0
@never.text = private unnamed_addr constant [17 x i8] c"hinterland:never\00", section "llvm.metadata"
@file = private unnamed_addr constant [4 x i8] c"a.c\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @never, ptr @never.text, ptr @file, i32 1, ptr null }], section "llvm.metadata"
declare ptr @llvm.threadlocal.address.p0(ptr)
declare void @abort() noreturn

; SAID: write of memory that may be far: left to page faults, for it reads and writes at once
; SAID: write of memory that may be far: left to page faults, for it reads and writes at once
; SAID: write of memory that may be far: left to page faults, for it is a barrier as well
; SAID: read of memory that may be far: left to page faults, for it is atomic, of more than 8 bytes
; SAID: read of memory that may be far: left to page faults, for its type is too large
; CHECK-NOT: asm
; CHECK-NOT: hinterland_
; CHECK-NOT: noredzone
; CHECK-NOT: llvm.global_ctors
define i64 @stack(i64 %i) {
  %array = alloca [16 x i64]
  %element = getelementptr i64, ptr %array, i64 %i
  store i64 %i, ptr %element
  %value = load i64, ptr %element
  ret i64 %value
}
define i64 @variable(i64 %i) {
  %element = getelementptr i64, ptr @table, i64 %i
  %value = load i64, ptr %element
  ret i64 %value
}
define i64 @of_thread() {
  %address = call ptr @llvm.threadlocal.address.p0(ptr @mine)
  %value = load i64, ptr %address
  ret i64 %value
}
define i64 @segment(ptr addrspace(256) %p) {
  %value = load i64, ptr addrspace(256) %p
  ret i64 %value
}
define i64 @not_optimized(ptr %p) noinline optnone {
  %value = load i64, ptr %p
  ret i64 %value
}
define i64 @cold(ptr %p) cold {
  %value = load i64, ptr %p
  ret i64 %value
}
define i64 @never(ptr %p) {
  %value = load i64, ptr %p
  ret i64 %value
}
define void @dies(ptr %p) {
  %value = load i64, ptr %p
  call void @abort()
  unreachable
}
define i64 @of_sanitizer(ptr %p) {
  %value = load i64, ptr %p, !nosanitize !0
  ret i64 %value
}
define i64 @in_one_step(ptr %p) {
  %before = atomicrmw add ptr %p, i64 1 seq_cst
  %pair = cmpxchg ptr %p, i64 %before, i64 7 seq_cst seq_cst
  store atomic i64 3, ptr %p seq_cst, align 8
  %wide = load atomic i128, ptr %p monotonic, align 16
  %huge = load <128 x i8>, ptr %p
  ret i64 %before
}
!0 = !{}
