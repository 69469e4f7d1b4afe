// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds an OpenMP runtime among the loaded libraries, by name. Wheels bring a copy under a mangled
// name (libgomp-a34b3233.so.1) and open it locally, so a search by symbol would miss it.

#include "OpenMPRuntime.h"

#include "ProcessFork.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <string>
#include <vector>

using namespace tessera::host;

namespace {
struct Search {
  unsigned long long numLoaded = 0;
  std::vector<std::string> candidates;
  bool wantCandidates = false;
};

int visitLibrary(dl_phdr_info *info, size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  search->numLoaded = info->dlpi_adds;
  if (!search->wantCandidates)
    return 1; // The count is the same in every entry.
  const char *base = std::strrchr(info->dlpi_name, '/');
  base = base ? base + 1 : info->dlpi_name;
  for (const char *stem : {"libgomp", "libomp", "libiomp"})
    if (std::strncmp(base, stem, std::strlen(stem)) == 0)
      search->candidates.push_back(info->dlpi_name);
  return 0;
}

bool open(const std::string &path, OpenMPRuntime &runtime) {
  void *library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library)
    return false;
  // The handle is never closed, so the runtime cannot be unloaded.
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  if (find(runtime.parallel, "GOMP_parallel") &&
      find(runtime.getThreadNumber, "omp_get_thread_num") &&
      find(runtime.getMaxThreads, "omp_get_max_threads") &&
      find(runtime.isInParallel, "omp_in_parallel"))
    return true;
  dlclose(library);
  return false;
}
} // namespace

const OpenMPRuntime *tessera::host::findOpenMPRuntime() {
  static std::atomic<const OpenMPRuntime *> found{nullptr};
  static std::atomic<unsigned long long> numLoadedAtLastSearch{0};
  static std::mutex mutex;

  if (isForkedChild())
    return nullptr;
  if (const OpenMPRuntime *runtime = found.load(std::memory_order_acquire))
    return runtime;
  Search search;
  dl_iterate_phdr(visitLibrary, &search);
  if (search.numLoaded == numLoadedAtLastSearch.load(std::memory_order_relaxed))
    return nullptr;

  std::lock_guard<std::mutex> lock(mutex);
  if (const OpenMPRuntime *runtime = found.load(std::memory_order_acquire))
    return runtime;
  search.wantCandidates = true;
  dl_iterate_phdr(visitLibrary, &search);
  for (const std::string &path : search.candidates) {
    OpenMPRuntime runtime;
    if (open(path, runtime)) {
      found.store(new OpenMPRuntime(runtime), std::memory_order_release);
      return found.load(std::memory_order_relaxed);
    }
  }
  numLoadedAtLastSearch.store(search.numLoaded, std::memory_order_relaxed);
  return nullptr;
}
