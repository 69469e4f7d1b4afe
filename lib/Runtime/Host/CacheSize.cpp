// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the size of the last cache, first from the kernel's list of caches. The result of sysconf
// adds up caches that no single CPU has (384 MB on a part of a CPU with 32 MB).

#include "CacheSize.h"

#include <cstdio>
#include <string>
#include <unistd.h>

using namespace tessera::host;

namespace {

/// The first number of a file about one cache, times 1024 if a K follows; 0 if there is none.
uint64_t readNumber(int cache, const char *what) {
  std::string path =
      "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(cache) + "/" + what;
  std::FILE *file = std::fopen(path.c_str(), "re");
  if (!file)
    return 0;
  unsigned long long number = 0;
  char unit = 0;
  int found = std::fscanf(file, "%llu%c", &number, &unit);
  std::fclose(file);
  if (found < 1)
    return 0;
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

uint64_t findLastCacheBytes() {
  uint64_t lastLevel = 0, bytes = 0;
  for (int cache = 0; uint64_t level = readNumber(cache, "level"); ++cache)
    if (level > lastLevel) {
      lastLevel = level;
      bytes = readNumber(cache, "size");
    }
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (bytes == 0)
    if (long size = sysconf(_SC_LEVEL3_CACHE_SIZE); size > 0)
      bytes = static_cast<uint64_t>(size);
#endif
  return bytes > 0 ? bytes : uint64_t(64) << 20;
}

} // namespace

uint64_t tessera::host::getLastCacheBytes() {
  static const uint64_t bytes = findLastCacheBytes();
  return bytes;
}
