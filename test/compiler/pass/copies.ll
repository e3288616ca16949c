; Loops that work on a copy of a block: which, on which bytes, and where it would cost more than the guards.
; RUN: opt -passes=hinterland-copies,hinterland-guards,verify -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-copies -pass-remarks=hinterland -pass-remarks-missed=hinterland -disable-output < %s 2>&1 | FileCheck --check-prefix=WHY %s
target triple = "x86_64-pc-linux-gnu"

; The loop is as it was, on another pointer, and has no guard.
; CHECK-LABEL: define i64 @sum(
; CHECK: %[[BEFORE:.*]] = call ptr @llvm.stacksave
; CHECK: %hinterland.window = icmp ult i64
; CHECK: br i1 %hinterland.window
; CHECK: %[[ROOM:.*]] = alloca [2112 x i8], align 64
; CHECK: %[[BORROWED:.*]] = call ptr %{{.*}}(ptr %{{.*}}, i64 0, i64 %{{.*}}, ptr %[[ROOM]])
; CHECK: %[[COPY:hinterland.copy.*]] = phi ptr [ %[[BORROWED]], %{{.*}} ], [ %{{.*}}, %{{.*}} ]
; CHECK: loop:
; CHECK: getelementptr i64, ptr %[[COPY]], i64 %i
; CHECK-NOT: br i1 %hinterland
; CHECK: load i64, {{.*}} !hinterland.copy
; CHECK-NOT: asm
; CHECK: br i1 %more
; CHECK: call void @llvm.stackrestore.p0(ptr %[[BEFORE]])
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %s.next = add i64 %s, %value
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 %s.next
}

; What is written goes back, and nothing else.
; CHECK-LABEL: define void @fill(
; CHECK: call ptr %{{.*}}(ptr %{{.*}}, i64 8, i64 88, ptr %{{.*}})
; CHECK: store i64 %i, ptr %{{.*}} !hinterland.copy
; CHECK: br i1 %hinterland.window
; CHECK: call void %{{.*}}(ptr %{{.*}}, ptr %hinterland.copy{{.*}}, i64 8, i64 88)
; CHECK: call void @llvm.stackrestore
; WHY-DAG: block that a loop writes: on a copy, without guards
define void @fill(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %i.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %i, ptr %element
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 11
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Every second word: who else writes the others must not lose that.
; CHECK-LABEL: define void @every_second(
; CHECK-NOT: stacksave
; CHECK: asm
; WHY-DAG: block that a loop writes: not on a copy, for not every byte of a stretch is written
define void @every_second(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %i, ptr %element
  %i.next = add nuw nsw i64 %i, 2
  %more = icmp ult i64 %i.next, 100
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define void @may_be_the_same(
; CHECK-NOT: stacksave
; CHECK: asm
; WHY-DAG: block that a loop reads: not on a copy, for its loop may write to it by another pointer
; WHY-DAG: block that a loop writes: not on a copy, for its loop may read it by another pointer
define void @may_be_the_same(ptr %p, ptr %q, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %from = getelementptr inbounds i64, ptr %q, i64 %i
  %value = load i64, ptr %from
  %to = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %value, ptr %to
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define i64 @calls(
; CHECK-NOT: stacksave
; CHECK: asm
; WHY-DAG: block that a loop reads: not on a copy, for its loop calls, or synchronises
declare void @other() nounwind
define i64 @calls(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  call void @other() nounwind
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %value, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 %value
}

; CHECK-LABEL: define i64 @waits(
; CHECK-NOT: stacksave
; CHECK: asm
define i64 @waits(ptr %p, ptr %flag) {
entry:
  br label %loop
loop:
  %flagged = load atomic i64, ptr %flag acquire, align 8
  %value = load i64, ptr %p
  %more = icmp ne i64 %value, %flagged
  br i1 %more, label %loop, label %end
end:
  ret i64 %value
}

; Three rounds; and by a profile, two.
; CHECK-LABEL: define i64 @few(
; CHECK-NOT: stacksave
; CHECK: asm
; WHY-DAG: block that a loop reads: not on a copy, for it would cost more than the guards
define i64 @few(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %s.next = add i64 %s, %value
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 3
  br i1 %more, label %loop, label %end
end:
  ret i64 %s.next
}

; CHECK-LABEL: define i64 @few_by_profile(
; CHECK-NOT: stacksave
; CHECK: asm
define i64 @few_by_profile(ptr %p, i64 %n) !prof !0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %element = getelementptr inbounds i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %s.next = add i64 %s, %value
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, %n
  br i1 %more, label %loop, label %end, !prof !1
end:
  ret i64 %s.next
}

; The point is copied once for all centres, these one by one.
; CHECK-LABEL: define i64 @nested(
; CHECK: call ptr @llvm.stacksave
; CHECK: call ptr %{{.*}}(ptr %{{.*}}, i64 0, i64 {{.*}}, ptr %{{.*}})
; CHECK: outer:
; CHECK: load ptr, ptr %row
; CHECK: call ptr @llvm.stacksave
; CHECK: inner:
; CHECK-NOT: asm
; CHECK: call void @llvm.stackrestore
; CHECK: call void @llvm.stackrestore
define i64 @nested(ptr %point, ptr %centres, i64 %k, i64 %n) {
entry:
  br label %outer
outer:
  %c = phi i64 [ 0, %entry ], [ %c.next, %outer.latch ]
  %sum = phi i64 [ 0, %entry ], [ %s.next, %outer.latch ]
  %row = getelementptr inbounds ptr, ptr %centres, i64 %c
  %centre = load ptr, ptr %row
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %i.next, %inner ]
  %s = phi i64 [ %sum, %outer ], [ %s.next, %inner ]
  %a = getelementptr inbounds i64, ptr %point, i64 %i
  %x = load i64, ptr %a
  %b = getelementptr inbounds i64, ptr %centre, i64 %i
  %y = load i64, ptr %b
  %z = xor i64 %x, %y
  %s.next = add i64 %s, %z
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, %n
  br i1 %more, label %inner, label %outer.latch
outer.latch:
  %c.next = add nuw nsw i64 %c, 1
  %again = icmp ne i64 %c.next, %k
  br i1 %again, label %outer, label %end
end:
  ret i64 %s.next
}

!0 = !{!"function_entry_count", i64 1000}
!1 = !{!"branch_weights", i32 1000, i32 1000}
