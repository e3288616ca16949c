; A loop over an array is cut into strips. Its body, and how the variable moves, stay as they are: only the latch's
; comparison and the block before the loop are others.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-hints,verify,verify<loops>,verify<domtree> -disable-output < %s
target triple = "x86_64-pc-linux-gnu"
; CHECK-LABEL: @sum(
; CHECK: entry:
; CHECK-NEXT: br label %hinterland.strip
; CHECK: hinterland.strip:
; CHECK: icmp ult
; CHECK: asm sideeffect alignstack "{{.*}}+40(%rip){{.*}}, 514\0A{{.*}}"(ptr elementtype(i8) %{{.*}}, ptr @__hinterland_hints, i64 %{{.*}})
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %i = phi i64 [ %{{.*}}, %hinterland.strip ], [ %i.next, %loop ]
; CHECK-NEXT: %total = phi i64 [ %{{.*}}, %hinterland.strip ], [ %total.next, %loop ]
; CHECK-NEXT: %element = getelementptr i64, ptr %p, i64 %i
; CHECK-NEXT: %value = load i64, ptr %element
; CHECK-NEXT: %total.next = add i64 %total, %value
; CHECK-NEXT: %i.next = add i64 %i, 1
; CHECK-NOT: asm
; CHECK: br i1 %{{.*}}, label %loop, label %hinterland.next
; CHECK: hinterland.next:
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %i.next, %n
; CHECK-NEXT: br i1 %[[MORE]], label %hinterland.strip, label %end
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %total = phi i64 [ 0, %entry ], [ %total.next, %loop ]
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %total.next = add i64 %total, %value
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi i64 [ %total.next, %loop ]
  ret i64 %result
}
; Downwards, by pointers, with the header as the branch's second successor.
; CHECK-LABEL: @down(
; CHECK: hinterland.strip:
; CHECK: asm sideeffect alignstack "{{.*}}+48(%rip){{.*}}, 515\0A
; CHECK: hinterland.next:
define void @down(ptr %begin, ptr %end) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %end, %entry ], [ %p.next, %loop ]
  %p.next = getelementptr i8, ptr %p, i64 -8
  store i64 1, ptr %p.next
  %done = icmp eq ptr %p.next, %begin
  br i1 %done, label %out, label %loop
out:
  ret void
}
