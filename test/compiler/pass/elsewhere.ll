; Another machine's code is left alone.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
target triple = "aarch64-unknown-linux-gnu"
; CHECK-NOT: asm
define i64 @through(ptr %p) {
  %value = load i64, ptr %p
  ret i64 %value
}
