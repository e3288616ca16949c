; Each access becomes two: as it was, and by a guard where its object is in the window. Whether it is, is asked where the
; object's pointer comes from.
; RUN: opt -passes=hinterland-guards,verify -S < %s | FileCheck %s
; RUN: opt -passes=hinterland-guards < %s | llc -relocation-model=pic | FileCheck --check-prefix=CODE %s
target triple = "x86_64-pc-linux-gnu"

; The description and its constructor come with the first guard.
; CHECK-DAG: @__hinterland_guards = linkonce_odr hidden externally_initialized global { i32, i32, i64, i64, [20 x ptr] } { i32 2, i32 184, i64 0, i64 0, [20 x ptr] zeroinitializer }, comdat, align 8
; CHECK-DAG: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 50, ptr @__hinterland_guards_begin, ptr @__hinterland_guards }]

; CHECK-LABEL: define i64 @through(ptr %p, i64 %i)
; CHECK: %[[NUMBER:.*]] = ptrtoint ptr %p to i64
; CHECK: %[[WITHIN:.*]] = sub i64 %[[NUMBER]]
; CHECK: %hinterland.window = icmp ult i64 %[[WITHIN]]
; CHECK: %element = getelementptr
; CHECK: br i1 %hinterland.window
; CHECK: %[[BY_GUARD:.*]] = call i64 asm sideeffect alignstack "callq *${2:c}+48(%rip)", "={rax},{r11},i,~{rcx},~{r10},~{memory},~{flags},~{dirflag},~{fpsr}"(ptr %element, ptr @__hinterland_guards)
; CHECK: %value = load i64, ptr %element
; CHECK: phi i64 [ %[[BY_GUARD]], %{{.*}} ], [ %value, %{{.*}} ]

; Outside of the window: four instructions more than the access.
; CODE-LABEL: through:
; CODE: subq __hinterland_guards+8(%rip), %[[REGISTER:r..]]
; CODE-NEXT: cmpq __hinterland_guards+16(%rip), %[[REGISTER]]
; CODE-NEXT: jae
; CODE: callq *__hinterland_guards+48(%rip)
define i64 @through(ptr %p, i64 %i) {
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  ret i64 %value
}

; Two fields and a loop's elements are one object: one question.
; CHECK-LABEL: define i64 @once(
; CHECK: icmp ult i64
; CHECK: loop:
; CHECK-NOT: icmp ult i64 %{{.*}}, %hinterland
; CHECK-COUNT-2: call i64 asm sideeffect alignstack "callq *${2:c}+48(%rip)"
; CHECK: ret i64
define i64 @once(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %element = getelementptr i64, ptr %p, i64 %i
  %value = load i64, ptr %element
  %field = getelementptr i8, ptr %p, i64 64
  %other = load i64, ptr %field
  %i.next = add i64 %i, 1
  %more = icmp ne i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %sum = add i64 %value, %other
  ret i64 %sum
}

; A pointer that a guard has read is another value from then on.
; CHECK-LABEL: define i8 @twice(
; CHECK: %[[POINTER:.*]] = phi ptr
; CHECK: ptrtoint ptr %[[POINTER]] to i64
; CHECK: "callq *${2:c}+24(%rip)"
define i8 @twice(ptr %p) {
  %next = load ptr, ptr %p
  %value = load i8, ptr %next
  ret i8 %value
}

; A pointer of which nobody knows whether it is the stack's.
; CHECK-LABEL: define i64 @merged(
; CHECK: %either = select
; CHECK: ptrtoint ptr %either to i64
; CHECK: asm sideeffect
define i64 @merged(i1 %which, ptr %p) {
  %mine = alloca i64
  store i64 5, ptr %mine
  %either = select i1 %which, ptr %mine, ptr %p
  %value = load i64, ptr %either
  ret i64 %value
}

; CHECK-LABEL: define void @types(
; CHECK: bitcast float %f to i32
; CHECK: zext i32 %{{.*}} to i64
; CHECK: asm sideeffect alignstack "callq *${2:c}+72(%rip)", "{r11},{rdx},i,~{rax},~{rcx},~{r10},~{memory},~{flags},~{dirflag},~{fpsr}"
; CHECK: "callq *${2:c}+56(%rip)"
; CHECK: call void %{{.*}}(ptr %{{.*}}, ptr %{{.*}}, i64 16)
define void @types(ptr %p, float %f, <4 x i32> %v, i1 %b) {
  store float %f, ptr %p
  %bit = getelementptr i8, ptr %p, i64 4
  store i1 %b, ptr %bit
  %far = getelementptr i8, ptr %p, i64 16
  store <4 x i32> %v, ptr %far
  ret void
}

; CHECK-LABEL: define void @copies(
; CHECK: or i1
; CHECK: call void %{{.*}}(ptr %a, ptr %b, i64 24)
; CHECK: call void @llvm.memcpy
; CHECK: call void %{{.*}}(ptr %a, i32 0, i64 %n)
; CHECK: call void @llvm.memset
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @copies(ptr %a, ptr %b, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 24, i1 false)
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 false)
  ret void
}

; What libc is asked of a block's bytes.
; CHECK-LABEL: define i32 @compares(
; CHECK: phi i64
; CHECK: call i32 %{{.*}}(ptr %a, ptr %b, i64 %{{.*}})
; CHECK: call i32 @memcmp
; CHECK: call i32 %{{.*}}(ptr %a, ptr %b, i64 -1)
; CHECK: call i32 @strcmp
declare i64 @strlen(ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare i32 @strcmp(ptr, ptr)
define i32 @compares(ptr %a, ptr %b) {
  %n = call i64 @strlen(ptr %a)
  %x = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  %y = call i32 @strcmp(ptr %a, ptr %b)
  %sum = add i32 %x, %y
  ret i32 %sum
}

; CHECK-LABEL: define ptr @makes(
; CHECK: call noalias ptr @__hinterland_malloc(i64 %n)
; CHECK: call ptr @__hinterland_calloc(i64 1, i64 100)
; CHECK: call ptr @malloc(i64 5000)
; CHECK: call ptr @__hinterland_new(i64 40)
; CHECK: call ptr @__hinterland_realloc(ptr %a, i64 90)
; CHECK-LABEL: define linkonce_odr hidden ptr @__hinterland_malloc(i64
declare noundef ptr @malloc(i64 noundef)
declare ptr @calloc(i64, i64)
declare ptr @_Znwm(i64)
declare ptr @realloc(ptr, i64)
define ptr @makes(i64 %n) {
  %a = call noalias ptr @malloc(i64 %n)
  %b = call ptr @calloc(i64 1, i64 100)
  %c = call ptr @malloc(i64 5000)
  %d = call ptr @_Znwm(i64 40)
  %e = call ptr @realloc(ptr %a, i64 90)
  ret ptr %a
}
