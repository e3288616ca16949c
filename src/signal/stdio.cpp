// stdio, which calls the kernel within libc, where nobody can stand in between. Its buffers are local (the preloaded
// library allocates locally what libc asks for), but large transfers go straight from and to the program's bytes.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "signal/held.hpp"
#include "signal/interposed.hpp"
#include "signal/transfers.hpp"

using namespace hinterland;

namespace {

// The stream is locked from the first step to the last, where the call itself would lock it.
class StreamLock {
 public:
  StreamLock(FILE* stream, bool locks) : stream_(stream), locks_(locks) {
    if (locks_) flockfile(stream_);
  }
  void unlock() {
    if (locks_) funlockfile(stream_);
  }

 private:
  FILE* stream_;
  bool locks_;
};

// one(pointer, bytes) moves so many items of one byte.
template <typename Call>
size_t items_in_steps(const void* pointer, size_t size, size_t count, FILE* stream, bool in, bool locks, Call&& one) {
  size_t bytes;
  if (size == 0 || __builtin_mul_overflow(size, count, &bytes)) return one(pointer, size, count);
  auto* at = static_cast<const char*>(pointer);
  if (!is_far(at) && (bytes == 0 || !is_far(at + (bytes - 1)))) return one(pointer, size, count);
  StreamLock lock(stream, locks);
  size_t done = 0;
  while (done < bytes) {
    size_t step = bytes - done < kHeldMax ? bytes - done : kHeldMax;
    Held held;
    if (in)
      held.in(at + done, step);
    else
      held.out(at + done, step);
    size_t moved = held.done(one(at + done, 1, step));
    done += moved;
    if (moved < step) break;
  }
  lock.unlock();
  return done / size;
}

}  // namespace

#define HL_FREAD(name, locks)                                                                                 \
  HL_INTERPOSED(size_t, name, (void* bytes, size_t size, size_t count, FILE* stream)) {                       \
    return items_in_steps(bytes, size, count, stream, false, locks, [=](const void* at, size_t s, size_t n) { \
      return NEXT(name)(const_cast<void*>(at), s, n, stream);                                                 \
    });                                                                                                       \
  }
HL_FREAD(fread, true)
HL_FREAD(fread_unlocked, false)

#define HL_FREAD_CHECKED(name, locks)                                                                         \
  HL_INTERPOSED(size_t, name, (void* bytes, size_t room, size_t size, size_t count, FILE* stream)) {          \
    return items_in_steps(bytes, size, count, stream, false, locks, [=](const void* at, size_t s, size_t n) { \
      size_t before = static_cast<size_t>(static_cast<const char*>(at) - static_cast<char*>(bytes));          \
      return NEXT(name)(const_cast<void*>(at), before < room ? room - before : 0, s, n, stream);              \
    });                                                                                                       \
  }
HL_FREAD_CHECKED(__fread_chk, true)
HL_FREAD_CHECKED(__fread_unlocked_chk, false)

#define HL_FWRITE(name, locks)                                                                               \
  HL_INTERPOSED(size_t, name, (const void* bytes, size_t size, size_t count, FILE* stream)) {                \
    return items_in_steps(bytes, size, count, stream, true, locks,                                           \
                          [=](const void* at, size_t s, size_t n) { return NEXT(name)(at, s, n, stream); }); \
  }
HL_FWRITE(fwrite, true)
HL_FWRITE(fwrite_unlocked, false)

HL_INTERPOSED(int, fputs, (const char* text, FILE* stream)) {
  if (!is_far(text)) return NEXT(fputs)(text, stream);
  size_t length = strlen(text);
  return fwrite(text, 1, length, stream) == length ? 1 : EOF;
}
HL_INTERPOSED(int, fputs_unlocked, (const char* text, FILE* stream)) {
  if (!is_far(text)) return NEXT(fputs_unlocked)(text, stream);
  size_t length = strlen(text);
  return fwrite_unlocked(text, 1, length, stream) == length ? 1 : EOF;
}
HL_INTERPOSED(int, puts, (const char* text)) {
  if (!is_far(text)) return NEXT(puts)(text);
  StreamLock lock(stdout, true);
  int result = OWN(fputs)(text, stdout) == EOF || putc('\n', stdout) == EOF ? EOF : 1;
  lock.unlock();
  return result;
}

// A buffer of the program's would be the kernel's to read and write: libc takes one of its own, of that size.
HL_INTERPOSED(int, setvbuf, (FILE * stream, char* buffer, int mode, size_t size)) {
  return NEXT(setvbuf)(stream, is_far(buffer) ? nullptr : buffer, mode, size);
}
HL_INTERPOSED(void, setbuf, (FILE * stream, char* buffer)) {
  if (is_far(buffer))
    setvbuf(stream, nullptr, _IOFBF, BUFSIZ);
  else
    NEXT(setbuf)(stream, buffer);
}
HL_INTERPOSED(void, setbuffer, (FILE * stream, char* buffer, size_t size)) {
  if (is_far(buffer))
    setvbuf(stream, nullptr, _IOFBF, size);
  else
    NEXT(setbuffer)(stream, buffer, size);
}

// Formatted output: a long text given for %s goes to the kernel as it lies. So all of it is put into memory of libc's
// own first.
extern "C" int __vasprintf_chk(char** result, int flag, const char* format, va_list list);

namespace {

int formatted(FILE* stream, int flag, const char* format, va_list list) {
  char* text = nullptr;
  int length = __vasprintf_chk(&text, flag, format, list);
  if (length < 0) return length;
  size_t written = fwrite(text, 1, static_cast<size_t>(length), stream);
  int saved_errno = errno;
  free(text);
  errno = saved_errno;
  return written == static_cast<size_t>(length) ? length : -1;
}

int formatted(int file, int flag, const char* format, va_list list) {
  char* text = nullptr;
  int length = __vasprintf_chk(&text, flag, format, list);
  if (length < 0) return length;
  for (ssize_t done = 0; done < length;) {
    ssize_t got = write(file, text + done, static_cast<size_t>(length - done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      length = -1;
      break;
    }
    done += got;
  }
  int saved_errno = errno;
  free(text);
  errno = saved_errno;
  return length;
}

}  // namespace

HL_INTERPOSED(int, vfprintf, (FILE * stream, const char* format, va_list list)) {
  return self_paging() ? formatted(stream, 0, format, list) : NEXT(vfprintf)(stream, format, list);
}
HL_INTERPOSED(int, __vfprintf_chk, (FILE * stream, int flag, const char* format, va_list list)) {
  return self_paging() ? formatted(stream, flag, format, list) : NEXT(__vfprintf_chk)(stream, flag, format, list);
}
HL_INTERPOSED(int, vdprintf, (int file, const char* format, va_list list)) {
  return self_paging() ? formatted(file, 0, format, list) : NEXT(vdprintf)(file, format, list);
}
HL_INTERPOSED(int, __vdprintf_chk, (int file, int flag, const char* format, va_list list)) {
  return self_paging() ? formatted(file, flag, format, list) : NEXT(__vdprintf_chk)(file, flag, format, list);
}
HL_INTERPOSED(int, vprintf, (const char* format, va_list list)) { return OWN(vfprintf)(stdout, format, list); }
HL_INTERPOSED(int, __vprintf_chk, (int flag, const char* format, va_list list)) {
  return OWN(__vfprintf_chk)(stdout, flag, format, list);
}

#define HL_WITH_LIST(last, call) \
  {                              \
    va_list list;                \
    va_start(list, last);        \
    int result = call;           \
    va_end(list);                \
    return result;               \
  }
HL_INTERPOSED(int, printf, (const char* format, ...))
HL_WITH_LIST(format, OWN(vfprintf)(stdout, format, list))
HL_INTERPOSED(int, fprintf, (FILE * stream, const char* format, ...))
HL_WITH_LIST(format, OWN(vfprintf)(stream, format, list))
HL_INTERPOSED(int, dprintf, (int file, const char* format, ...))
HL_WITH_LIST(format, OWN(vdprintf)(file, format, list))
HL_INTERPOSED(int, __printf_chk, (int flag, const char* format, ...))
HL_WITH_LIST(format, OWN(__vfprintf_chk)(stdout, flag, format, list))
HL_INTERPOSED(int, __fprintf_chk, (FILE * stream, int flag, const char* format, ...))
HL_WITH_LIST(format, OWN(__vfprintf_chk)(stream, flag, format, list))
HL_INTERPOSED(int, __dprintf_chk, (int file, int flag, const char* format, ...))
HL_WITH_LIST(format, OWN(__vdprintf_chk)(file, flag, format, list))
