; Copies of a length that is not known carry it, in a register of their own; short ones are one access.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
; CHECK-LABEL: @copy(
; CHECK: asm sideeffect alignstack "{{.*}}+48(%rip){{.*}}, 259\0A{{.*}}", "*m,i,{r10},~{r11},~{flags},~{dirflag},~{fpsr}"(ptr elementtype(i8) %to, ptr @__hinterland_hints, i64 %bytes)
; CHECK-NEXT: asm sideeffect alignstack "{{.*}}+40(%rip){{.*}}, 258\0A{{.*}}"(ptr elementtype(i8) %from, ptr @__hinterland_hints, i64 %bytes)
; CHECK-NEXT: call void @llvm.memcpy
define void @copy(ptr %to, ptr %from, i64 %bytes) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}
; CHECK-LABEL: @clear(
; CHECK: asm sideeffect alignstack "{{.*}}+32(%rip){{.*}}"(ptr elementtype(i8) %p, ptr @__hinterland_hints)
define void @clear(ptr %p) {
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 64, i1 false)
  ret void
}
