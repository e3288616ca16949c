; A pointer that may be to the stack or elsewhere may be far.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"
; CHECK-LABEL: @merged(
; CHECK: call void asm sideeffect
define i64 @merged(i1 %which, ptr %p) {
  %local = alloca i64
  store i64 1, ptr %local
  %chosen = select i1 %which, ptr %local, ptr %p
  %value = load i64, ptr %chosen
  ret i64 %value
}
