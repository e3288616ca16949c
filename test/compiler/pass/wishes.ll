; What functions are annotated with.
; RUN: opt -passes=hinterland-hints -S < %s 2>%t | FileCheck %s
; RUN: FileCheck --check-prefix=SAID %s < %t
target triple = "x86_64-pc-linux-gnu"
@never.text = private unnamed_addr constant [17 x i8] c"hinterland:never\00", section "llvm.metadata"
@always.text = private unnamed_addr constant [18 x i8] c"hinterland:always\00", section "llvm.metadata"
@wrong.text = private unnamed_addr constant [17 x i8] c"hinterland:maybe\00", section "llvm.metadata"
@file = private unnamed_addr constant [4 x i8] c"a.c\00", section "llvm.metadata"
@llvm.global.annotations = appending global [3 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @never, ptr @never.text, ptr @file, i32 1, ptr null }, { ptr, ptr, ptr, i32, ptr } { ptr @always, ptr @always.text, ptr @file, i32 2, ptr null }, { ptr, ptr, ptr, i32, ptr } { ptr @wrong, ptr @wrong.text, ptr @file, i32 3, ptr null }], section "llvm.metadata"
; SAID: function 'wrong' is annotated 'hinterland:maybe', which means nothing; there are hinterland:never and hinterland:always
; CHECK-LABEL: @never(
; CHECK-NOT: asm
; CHECK: ret
define i64 @never(ptr %p) {
  %value = load i64, ptr %p
  ret i64 %value
}
; CHECK-LABEL: @always(
; CHECK: loop:
; CHECK: asm sideeffect
; CHECK: ret
define i64 @always(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 %value
}
; CHECK-LABEL: @wrong(
; CHECK: asm sideeffect
define i64 @wrong(ptr %p) {
  %value = load i64, ptr %p
  ret i64 %value
}
