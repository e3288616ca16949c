; Where faults read ahead as well as a hint would, and where a hint would cost more than it brings: nothing in the
; loops themselves.
; RUN: opt -passes=hinterland-hints -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-hints -pass-remarks-missed=hinterland -disable-output < %s 2>&1 | FileCheck --check-prefix=REMARK %s
target triple = "x86_64-pc-linux-gnu"
; A parser: the pointer moves by one in some rounds.
; REMARK: its pointer moves slowly, and faults read ahead
; CHECK-LABEL: @parser(
; CHECK-NOT: asm
; CHECK: ret
define i64 @parser(ptr %text, ptr %table) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %text, %entry ], [ %p.next, %again ]
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ]
  %c = load i8, ptr %p
  %is.space = icmp eq i8 %c, 32
  br i1 %is.space, label %skip, label %word
skip:
  %p.skip = getelementptr i8, ptr %p, i64 2
  br label %again
word:
  %p.word = getelementptr i8, ptr %p, i64 1
  br label %again
again:
  %p.next = phi ptr [ %p.skip, %skip ], [ %p.word, %word ]
  %n.next = add i64 %n, 1
  %done = icmp eq i64 %n.next, 1000000
  br i1 %done, label %out, label %loop
out:
  ret i64 %n.next
}
; The rows of a matrix, each of four numbers: one access for a round of the outer loop, in its strips; nothing within.
; CHECK-LABEL: @rows(
; CHECK: hinterland.strip:
; CHECK: asm sideeffect
; CHECK: rows:
; CHECK-NOT: asm
; CHECK: hinterland.next:
; CHECK-NOT: asm
; CHECK: ret
define i64 @rows(ptr %p, i64 %n) {
entry:
  br label %rows
rows:
  %row = phi i64 [ 0, %entry ], [ %row.next, %rows.end ]
  %sum = phi i64 [ 0, %entry ], [ %total.next, %rows.end ]
  %begin = getelementptr [4 x i64], ptr %p, i64 %row
  br label %columns
columns:
  %column = phi i64 [ 0, %rows ], [ %column.next, %columns ]
  %total = phi i64 [ %sum, %rows ], [ %total.next, %columns ]
  %element = getelementptr i64, ptr %begin, i64 %column
  %value = load i64, ptr %element
  %total.next = add i64 %total, %value
  %column.next = add i64 %column, 1
  %more.columns = icmp ult i64 %column.next, 4
  br i1 %more.columns, label %columns, label %rows.end
rows.end:
  %row.next = add i64 %row, 1
  %more.rows = icmp ult i64 %row.next, %n
  br i1 %more.rows, label %rows, label %end
end:
  ret i64 %total.next
}
; A loop inside another that begins anywhere: one look where it begins.
; CHECK-LABEL: @lists(
; CHECK: next:
; CHECK: asm sideeffect
; CHECK: asm sideeffect
; CHECK: scan:
; CHECK-NOT: asm
; CHECK: ret
define i64 @lists(ptr %first, i64 %n) {
entry:
  br label %next
next:
  %list = phi ptr [ %first, %entry ], [ %link, %next.end ]
  %link = load ptr, ptr %list
  %data = load ptr, ptr %link
  br label %scan
scan:
  %i = phi i64 [ 0, %next ], [ %i.next, %scan ]
  %element = getelementptr i64, ptr %data, i64 %i
  %value = load i64, ptr %element
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %scan, label %next.end
next.end:
  %last = icmp eq ptr %link, null
  br i1 %last, label %end, label %next
end:
  ret i64 %value
}
