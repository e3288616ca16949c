// What waits by futex(2): the kernel reads the word before it puts the thread to sleep, and with EFAULT libc ends the
// process. First the way that needs no kernel; then with the object held.
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "signal/held.hpp"
#include "signal/interposed.hpp"

using namespace hinterland;

// `attempt` returns EBUSY (or `busy`) when it would have to wait.
#define HL_TRIED(result, name, parameters, arguments, object, attempt, busy) \
  HL_INTERPOSED(result, name, parameters) {                                  \
    if (!is_far(object)) return NEXT(name) arguments;                        \
    if (result tried = attempt(object); tried != (busy)) return tried;       \
    Held held;                                                               \
    held.out(object);                                                        \
    return held.done(NEXT(name) arguments);                                  \
  }

HL_TRIED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), mutex, pthread_mutex_trylock, EBUSY)
HL_TRIED(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const timespec* until), (mutex, until), mutex,
         pthread_mutex_trylock, EBUSY)
HL_TRIED(int, pthread_mutex_clocklock, (pthread_mutex_t * mutex, clockid_t clock, const timespec* until),
         (mutex, clock, until), mutex, pthread_mutex_trylock, EBUSY)
HL_TRIED(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), lock, pthread_rwlock_tryrdlock, EBUSY)
HL_TRIED(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), lock, pthread_rwlock_trywrlock, EBUSY)
HL_TRIED(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const timespec* until), (lock, until), lock,
         pthread_rwlock_tryrdlock, EBUSY)
HL_TRIED(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const timespec* until), (lock, until), lock,
         pthread_rwlock_trywrlock, EBUSY)
HL_TRIED(int, mtx_lock, (mtx_t * mutex), (mutex), mutex, mtx_trylock, thrd_busy)
HL_TRIED(int, mtx_timedlock, (mtx_t * mutex, const timespec* until), (mutex, until), mutex, mtx_trylock, thrd_busy)

#define HL_SEMAPHORE(name, parameters, arguments)        \
  HL_INTERPOSED(int, name, parameters) {                 \
    if (!is_far(semaphore)) return NEXT(name) arguments; \
    int saved_errno = errno;                             \
    if (sem_trywait(semaphore) == 0) return 0;           \
    errno = saved_errno;                                 \
    Held held;                                           \
    held.out(semaphore);                                 \
    return held.done(NEXT(name) arguments);              \
  }
HL_SEMAPHORE(sem_wait, (sem_t * semaphore), (semaphore))
HL_SEMAPHORE(sem_timedwait, (sem_t * semaphore, const timespec* until), (semaphore, until))
HL_SEMAPHORE(sem_clockwait, (sem_t * semaphore, clockid_t clock, const timespec* until), (semaphore, clock, until))

// The old versions of these have another layout.
#define HL_CONDITION(name, parameters, arguments, ...)     \
  HL_INTERPOSED_AS(int, name, "GLIBC_2.3.2", parameters) { \
    if (!is_far(condition)) return NEXT(name) arguments;   \
    Held held;                                             \
    held.out(condition);                                   \
    __VA_ARGS__;                                           \
    return held.done(NEXT(name) arguments);                \
  }
HL_CONDITION(pthread_cond_signal, (pthread_cond_t * condition), (condition))
HL_CONDITION(pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
HL_CONDITION(pthread_cond_destroy, (pthread_cond_t * condition), (condition))
HL_INTERPOSED_AS(int, pthread_cond_wait, "GLIBC_2.3.2", (pthread_cond_t * condition, pthread_mutex_t* mutex)) {
  if (!self_paging()) return NEXT(pthread_cond_wait)(condition, mutex);
  Held held;
  held.out(condition);
  held.out(mutex);
  return held.done(NEXT(pthread_cond_wait)(condition, mutex));
}
HL_INTERPOSED_AS(int, pthread_cond_timedwait, "GLIBC_2.3.2",
                 (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* until)) {
  if (!self_paging()) return NEXT(pthread_cond_timedwait)(condition, mutex, until);
  Held held;
  held.out(condition);
  held.out(mutex);
  return held.done(NEXT(pthread_cond_timedwait)(condition, mutex, until));
}
HL_HELD(int, pthread_cond_clockwait,
        (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until),
        (condition, mutex, clock, until), held.out(condition), held.out(mutex))
HL_HELD(int, cnd_wait, (cnd_t * condition, mtx_t* mutex), (condition, mutex), held.out(condition), held.out(mutex))
HL_HELD(int, cnd_timedwait, (cnd_t * condition, mtx_t* mutex, const timespec* until), (condition, mutex, until),
        held.out(condition), held.out(mutex))
HL_HELD(int, cnd_signal, (cnd_t * condition), (condition), held.out(condition))
HL_HELD(int, cnd_broadcast, (cnd_t * condition), (condition), held.out(condition))

HL_HELD(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier), held.out(barrier))
HL_HELD(int, pthread_barrier_destroy, (pthread_barrier_t * barrier), (barrier), held.out(barrier))
HL_HELD(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, const timespec* until),
        (lock, clock, until), held.out(lock))
HL_HELD(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, const timespec* until),
        (lock, clock, until), held.out(lock))
HL_HELD(int, pthread_once, (pthread_once_t * once, void (*routine)()), (once, routine), held.out(once))
