// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Has what is built with a new glibc run with glibc 2.28, that of manylinux_2_28.
//
// A function that glibc has changed, or moved from one library to another, has a version for each
// of its states, and a linker takes the newest. Defined here, such a function is this library's own
// and hands on to its oldest version, which every glibc has; what old glibcs have not at all is
// written out. It holds for all that is in libtessera.so and in the extension, LLVM and the C++
// library included, and for nothing else in a process. `tools/wheel` refuses a library that asks
// for anything newer than the wheel says.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <malloc.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define SETNAME_VERSION "GLIBC_2.12"
#define JUMP "jmp"
#define PLT "@PLT"
constexpr int kStatVersion = 1;
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define SETNAME_VERSION "GLIBC_2.17"
#define JUMP "b"
#define PLT ""
constexpr int kStatVersion = 0;
#endif

// Each in a section of its own, so that what a library does not call is not asked for.
#define HAND_ON_TO(name, version)                                                                  \
  asm(".pushsection .text.old." #name ",\"ax\",%progbits\n"                                        \
      ".globl " #name "\n.hidden " #name "\n.type " #name ",%function\n"                           \
      ".symver tessera_old_" #name ", " #name "@" version "\n" #name ":\n  " JUMP                  \
      " tessera_old_" #name PLT "\n"                                                               \
      ".size " #name ", .-" #name "\n.popsection")
#define HAND_ON(name) HAND_ON_TO(name, OLDEST)

// Moved into libc.so.6 by glibc 2.34, or changed in what they take for their own errors.
HAND_ON(dladdr);
HAND_ON(dlclose);
HAND_ON(dlerror);
HAND_ON(dlopen);
HAND_ON(dlsym);
HAND_ON(pthread_attr_setstacksize);
HAND_ON(pthread_create);
HAND_ON(pthread_detach);
HAND_ON(pthread_getspecific);
HAND_ON(pthread_join);
HAND_ON(pthread_key_create);
HAND_ON(pthread_mutex_trylock);
HAND_ON(pthread_once);
HAND_ON(pthread_rwlock_rdlock);
HAND_ON(pthread_rwlock_unlock);
HAND_ON(pthread_rwlock_wrlock);
HAND_ON(pthread_setspecific);
HAND_ON(pthread_sigmask);
HAND_ON_TO(pthread_setname_np, SETNAME_VERSION);

// Since glibc 2.29 they set errno themselves; the results are the same.
HAND_ON(exp);
HAND_ON(exp2);
HAND_ON(log);
HAND_ON(log2);
HAND_ON(pow);

// Declared by glibc's headers, which say nothing of whose they are.
#define OWN __attribute__((visibility("hidden")))

extern "C" {

int __xstat(int version, const char *path, struct stat *result);
int __lxstat(int version, const char *path, struct stat *result);
int __fxstat(int version, int file, struct stat *result);

/// glibc 2.33.
OWN int stat(const char *path, struct stat *result) noexcept {
  return __xstat(kStatVersion, path, result);
}

OWN int lstat(const char *path, struct stat *result) noexcept {
  return __lxstat(kStatVersion, path, result);
}

OWN int fstat(int file, struct stat *result) noexcept {
  return __fxstat(kStatVersion, file, result);
}

/// glibc 2.30.
OWN pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// glibc 2.32: whether the process has one thread, so that the C++ library may count references
/// without atomics. Never said.
OWN char __libc_single_threaded = 0;

/// glibc 2.36.
OWN uint32_t arc4random() noexcept {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value) && errno == EINTR) {
  }
  return value;
}

/// glibc 2.33: LLVM asks how much is allocated, for its own statistics.
OWN struct mallinfo2 mallinfo2() noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
  auto widen = [](int value) { return static_cast<size_t>(static_cast<unsigned>(value)); };
  struct mallinfo2 info = {};
  info.arena = widen(old.arena);
  info.ordblks = widen(old.ordblks);
  info.hblks = widen(old.hblks);
  info.hblkhd = widen(old.hblkhd);
  info.uordblks = widen(old.uordblks);
  info.fordblks = widen(old.fordblks);
  info.keepcost = widen(old.keepcost);
  return info;
}

/// glibc 2.30: waits by the clock that is given, where `pthread_cond_timedwait` waits by the
/// time of day. That may be set meanwhile, so that no wait takes longer than a second: who is
/// woken early, as anybody who waits may be, looks at its own clock and waits again.
OWN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                               const timespec *until) {
  constexpr int64_t kSecond = 1000000000;
  auto nanoseconds = [](const timespec &time) { return time.tv_sec * kSecond + time.tv_nsec; };
  timespec now, day;
  if (clock_gettime(clock, &now) != 0)
    return EINVAL;
  int64_t left = nanoseconds(*until) - nanoseconds(now);
  if (left <= 0)
    return ETIMEDOUT;
  bool isLast = left <= kSecond;
  clock_gettime(CLOCK_REALTIME, &day);
  int64_t end = nanoseconds(day) + (isLast ? left : kSecond);
  timespec limit = {static_cast<time_t>(end / kSecond), static_cast<long>(end % kSecond)};
  int result = pthread_cond_timedwait(condition, mutex, &limit);
  return result == ETIMEDOUT && !isLast ? 0 : result;
}

} // extern "C"
