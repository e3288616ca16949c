; A static site: a comparison, and a call where a runtime has filled in the check. The table has where the call returns
; to, less the five bytes of a nop.
; RUN: opt -passes=hinterland-static-hints -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-static-hints < %s | llc -relocation-model=pic | FileCheck --check-prefix=CODE %s
target triple = "x86_64-pc-linux-gnu"

; CHECK: call void asm sideeffect alignstack "cmpq $$0, ${1:c}+24(%rip)\0A{{.*}}, 4\0A.popsection", "*m,i,~{r11},~{flags},~{dirflag},~{fpsr}"(ptr elementtype(i8) %element, ptr @__hinterland_hints)
; CHECK-NEXT: load i64, ptr %element
; CODE-LABEL: through:
; CODE: cmpq $0, __hinterland_hints+24(%rip)
; CODE-NEXT: je [[PAST:.Lhinterland_past[0-9]+]]
; CODE-NEXT: leaq (%rdi,%rsi,8), %r11
; CODE-NEXT: callq *__hinterland_hints+24(%rip)
; CODE-NEXT: [[PAST]]:
; CODE-NEXT: .section hinterland_sites
; CODE: .long ([[PAST]]-5)-
; CODE: movq (%rdi,%rsi,8), %rax
define i64 @through(ptr %p, i64 %i) {
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  ret i64 %value
}

; CHECK: asm sideeffect alignstack "cmpq $$0, ${1:c}+32(%rip)\0A{{.*}}, 5\0A
define void @writes(ptr %p) {
  store i64 1, ptr %p
  ret void
}
