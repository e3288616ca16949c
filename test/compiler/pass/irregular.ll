; A pointer that comes from memory is hinted, and the red zone goes. The site is in front of the access, and the
; description, the constructor and the ends of the table come with the first one.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-hints < %s | llc -relocation-model=pic | FileCheck --check-prefix=CODE %s
target triple = "x86_64-pc-linux-gnu"

; CHECK-DAG: @__hinterland_hints = linkonce_odr hidden global { i32, i32, ptr, ptr, [4 x ptr] } { i32 1, i32 12, ptr @__start_hinterland_sites, ptr @__stop_hinterland_sites, [4 x ptr] zeroinitializer }, comdat, align 8
; CHECK-DAG: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 50, ptr @__hinterland_begin, ptr @__hinterland_hints }]

; CHECK: define i64 @through(ptr %p, i64 %i) #[[ATTRIBUTES:[0-9]+]]
; CHECK: %element = getelementptr
; CHECK-NEXT: call void asm sideeffect alignstack "{{.*}}0x0f,0x1f,0x44,0x00,0x00{{.*}}", "*m,i,~{r11},~{flags},~{dirflag},~{fpsr}"(ptr elementtype(i8) %element, ptr @__hinterland_hints)
; CHECK-NEXT: load i64, ptr %element

; Nothing is computed for the site where the program runs: the address is where it is called. A leaf function aligns its
; stack, as one that calls.
; CODE-LABEL: through:
; CODE: .byte 15
; CODE: leaq (%rdi,%rsi,8), %r11
; CODE-NEXT: jmpq *__hinterland_hints+24(%rip)
; CODE: movq (%rdi,%rsi,8), %rax
; CODE-NEXT: popq
; CODE-NEXT: .cfi_def_cfa_offset
; CODE-NEXT: retq
define i64 @through(ptr %p, i64 %i) {
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  ret i64 %value
}
; Writing is another kind: the second check.
; CHECK-LABEL: define void @store(
; CHECK: call void asm sideeffect alignstack "{{.*}}+32(%rip){{.*}}, 1\0A
define void @store(ptr %p, i64 %i) {
  %element = getelementptr i64, ptr %p, i64 %i
  store i64 1, ptr %element
  ret void
}
; CHECK: attributes #[[ATTRIBUTES]] = { noredzone }
