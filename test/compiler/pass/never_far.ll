; The stack, the program's variables and thread-local ones are never far: not a byte of these functions changes, and
; where nothing is hinted nothing else is added to the module.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"
@table = global [16 x i64] zeroinitializer
@mine = thread_local global i64 0
declare ptr @llvm.threadlocal.address.p0(ptr)
declare void @abort() noreturn

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
define i64 @by_value(ptr byval([4 x i64]) %copy) {
  %value = load i64, ptr %copy
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
define void @dies(ptr %p) {
  %value = load i64, ptr %p
  call void @abort()
  unreachable
}
define i64 @of_sanitizer(ptr %p) {
  %value = load i64, ptr %p, !nosanitize !0
  ret i64 %value
}
!0 = !{}
