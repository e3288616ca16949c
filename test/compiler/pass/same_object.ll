; One site for an object: fields, small indices; one that reads becomes one that writes where the write follows.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"
; CHECK-LABEL: @fields(
; CHECK: asm sideeffect alignstack "{{.*}}+24(%rip){{.*}}(ptr elementtype(i8) %p, ptr @__hinterland_hints)
; CHECK-NOT: asm sideeffect
; CHECK: ret
define i64 @fields(ptr %p, i1 %right) {
  %key = load i64, ptr %p
  %index = zext i1 %right to i64
  %children = getelementptr i8, ptr %p, i64 8
  %child = getelementptr ptr, ptr %children, i64 %index
  %next = load ptr, ptr %child
  %number = ptrtoint ptr %next to i64
  %sum = add i64 %key, %number
  ret i64 %sum
}
; CHECK-LABEL: @read_then_written(
; CHECK: asm sideeffect alignstack "{{.*}}+32(%rip)
; CHECK-NOT: asm sideeffect
; CHECK: ret
define void @read_then_written(ptr %p) {
  %count = load i64, ptr %p
  %more = add i64 %count, 1
  store i64 %more, ptr %p
  ret void
}
; Two far apart are two.
; CHECK-LABEL: @far_apart(
; CHECK-COUNT-2: asm sideeffect
; CHECK-NOT: asm sideeffect
; CHECK: ret
define i64 @far_apart(ptr %p) {
  %first = load i64, ptr %p
  %where = getelementptr i8, ptr %p, i64 1024
  %second = load i64, ptr %where
  %sum = add i64 %first, %second
  ret i64 %sum
}
; A read that may not be followed by the write stays a read.
; CHECK-LABEL: @perhaps_written(
; CHECK: asm sideeffect alignstack "{{.*}}+24(%rip)
; CHECK: asm sideeffect alignstack "{{.*}}+32(%rip)
; CHECK: ret
define void @perhaps_written(ptr %p, i1 %writes) {
  %count = load i64, ptr %p
  br i1 %writes, label %write, label %end
write:
  store i64 1, ptr %p
  br label %end
end:
  ret void
}
