// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the number of threads of a launch.

#include "OpenMPRuntime.h"
#include "tessera/Runtime/Host/ThreadPool.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

using namespace tessera::host;

namespace {

/// The first number of an environment variable ("4,2" of OMP_NUM_THREADS is 4), or 0.
int readEnvironment(const char *name) {
  const char *text = std::getenv(name);
  if (!text)
    return 0;
  char *end = nullptr;
  errno = 0;
  long value = std::strtol(text, &end, 10);
  if (end == text || errno == ERANGE || value < 1 || value > 4096)
    return 0;
  return static_cast<int>(value);
}

int countAffinity() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// The CPUs that a cgroup's quota equals, rounded up; 0 without a quota.
int readQuota(const std::string &folder) {
  double quota = 0, period = 0;
  char first[32] = "";
  if (std::FILE *file = std::fopen((folder + "/cpu.max").c_str(), "r")) {
    int read = std::fscanf(file, "%31s %lf", first, &period);
    std::fclose(file);
    if (read != 2 || std::strcmp(first, "max") == 0)
      return 0;
    quota = std::strtod(first, nullptr);
  } else {
    std::FILE *quotaFile = std::fopen((folder + "/cpu.cfs_quota_us").c_str(), "r");
    std::FILE *periodFile = std::fopen((folder + "/cpu.cfs_period_us").c_str(), "r");
    bool isRead = quotaFile && periodFile && std::fscanf(quotaFile, "%lf", &quota) == 1 &&
                  std::fscanf(periodFile, "%lf", &period) == 1;
    if (quotaFile)
      std::fclose(quotaFile);
    if (periodFile)
      std::fclose(periodFile);
    if (!isRead)
      return 0;
  }
  if (quota <= 0 || period <= 0)
    return 0;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

int countQuota() {
  int least = 0;
  auto consider = [&](const std::string &folder) {
    int cpus = readQuota(folder);
    if (cpus > 0 && (least == 0 || cpus < least))
      least = cpus;
  };
  // In a container, the process's cgroup is mounted at the root; elsewhere /proc names it.
  consider("/sys/fs/cgroup");
  consider("/sys/fs/cgroup/cpu");
  if (std::FILE *file = std::fopen("/proc/self/cgroup", "r")) {
    char line[1024];
    while (std::fgets(line, sizeof(line), file)) {
      line[std::strcspn(line, "\n")] = '\0';
      if (std::strncmp(line, "0::", 3) == 0)
        for (std::string path = line + 3; path.size() > 1; path.resize(path.rfind('/')))
          consider("/sys/fs/cgroup" + path);
    }
    std::fclose(file);
  }
  return least;
}

} // namespace

int tessera::host::getNumAvailableCPUs() {
  int cpus = std::max(1, countAffinity());
  // Cached, since reading the quota opens files, and it hardly ever changes.
  static const int quota = countQuota();
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

int tessera::host::getDefaultNumThreads() {
  if (int threads = readEnvironment("TESSERA_NUM_THREADS"))
    return threads;
  if (const OpenMPRuntime *runtime = findOpenMPRuntime())
    return std::max(1, runtime->getMaxThreads());
  if (int threads = readEnvironment("OMP_NUM_THREADS"))
    return threads;
  return getNumAvailableCPUs();
}
