// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets a library that is built with a new glibc run with glibc 2.28, that of manylinux_2_28.
//
// If glibc has changed a function, or moved it to another library, the function has several
// versions, and a linker chooses the newest. This file defines such functions again, and forwards
// each to its oldest version, which every glibc has. It implements functions that old glibcs lack.
// The definitions serve libtessera.so and the extension, with LLVM and the C++ library in them, and
// no other library of the process. `tools/wheel` refuses a library that needs newer versions than
// the wheel declares.

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

// Each function has a section of its own. The linker drops unused ones, which then need no symbol
// of glibc.
#define HAND_ON_TO(name, version)                                                                  \
  asm(".pushsection .text.old." #name ",\"ax\",%progbits\n"                                        \
      ".globl " #name "\n.hidden " #name "\n.type " #name ",%function\n"                           \
      ".symver tessera_old_" #name ", " #name "@" version "\n" #name ":\n  " JUMP                  \
      " tessera_old_" #name PLT "\n"                                                               \
      ".size " #name ", .-" #name "\n.popsection")
#define HAND_ON(name) HAND_ON_TO(name, OLDEST)

// glibc 2.34 moved these into libc.so.6, or changed which arguments they report as errors.
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

// Since glibc 2.29 these set errno themselves; the results are the same.
HAND_ON(exp);
HAND_ON(exp2);
HAND_ON(log);
HAND_ON(log2);
HAND_ON(pow);

// glibc's headers declare these without a visibility.
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

/// glibc 2.32: true if the process has one thread, which lets the C++ library count references
/// without atomics. Always false here.
OWN char __libc_single_threaded = 0;

/// glibc 2.36.
OWN uint32_t arc4random() noexcept {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value) && errno == EINTR) {
  }
  return value;
}

/// glibc 2.33: LLVM reads the allocated memory for its statistics.
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

/// glibc 2.30: waits by the given clock. `pthread_cond_timedwait` waits by the time of day, which
/// may be set meanwhile, so no wait is longer than a second. A caller must handle early wake-ups
/// anyway: it reads its own clock and waits again.
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
