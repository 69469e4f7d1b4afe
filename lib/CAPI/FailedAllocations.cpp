// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Wraps the allocations that this library, LLVM included, makes without `new` (-Wl,--wrap). If one
// fails, the reserve is released and the allocation is tried again
// (tessera/Support/MemoryReserve.h). `new` has a handler for that.

#include "tessera/Support/MemoryReserve.h"

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>

using namespace tessera;

extern "C" {
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);

void *__wrap_malloc(size_t bytes) {
  void *memory;
  do
    memory = __real_malloc(bytes);
  while (!memory && bytes != 0 && giveUpMemoryReserve());
  return memory;
}

void *__wrap_calloc(size_t count, size_t bytes) {
  void *memory;
  do
    memory = __real_calloc(count, bytes);
  while (!memory && count != 0 && bytes != 0 && giveUpMemoryReserve());
  return memory;
}

void *__wrap_realloc(void *old, size_t bytes) {
  void *memory;
  do
    memory = __real_realloc(old, bytes);
  while (!memory && bytes != 0 && giveUpMemoryReserve());
  return memory;
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void *memory;
  do
    memory = __real_mmap(address, bytes, protection, flags, file, offset);
  while (memory == MAP_FAILED && errno == ENOMEM && giveUpMemoryReserve());
  return memory;
}
}
