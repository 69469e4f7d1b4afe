// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts programs by vfork and exec. A fork copies the page tables of the process, which with torch
// loaded takes longer than most of the programs here. posix_spawn cannot request a signal at the
// parent's death.

#include "tessera/Target/NVPTX/ChildProcess.h"

#include "tessera/Support/Cancellation.h"

#include "llvm/ADT/SmallVector.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace tessera;

extern char **environ;

/// Runs in the child. It shares this process's memory until exec, so it may only make system calls.
/// Returns only on an error.
static void becomeProgram(char *const *command, char *const *environment, const char *log,
                          int folder, pid_t parent, const sigset_t &signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    return;
  // Make a process group, all of which stop() ends.
  if (setpgid(0, 0) != 0 || (folder >= 0 && fchdir(folder) != 0))
    return;
  umask(077);
  int input = open("/dev/null", O_RDONLY);
  int output = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (input < 0 || output < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
    return;
  // Python ignores SIGPIPE, and a program would inherit that.
  struct sigaction byDefault = {};
  byDefault.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &byDefault, nullptr);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execve(command[0], command, environment);
}

std::string ChildProcess::start(llvm::ArrayRef<std::string> command, const std::string &log,
                                llvm::ArrayRef<std::string> variables, int folder) {
  stop();
  llvm::SmallVector<char *> arguments, environment;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  auto isGiven = [&](const char *known) {
    return llvm::any_of(variables, [&](const std::string &variable) {
      size_t name = variable.find('=') + 1;
      return strncmp(known, variable.c_str(), name) == 0;
    });
  };
  for (const std::string &variable : variables)
    environment.push_back(const_cast<char *>(variable.c_str()));
  for (char **known = environ; *known; ++known)
    if (!isGiven(*known))
      environment.push_back(*known);
  environment.push_back(nullptr);

  // No signal handler may run in the child, which shares this process's memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t parent = getpid();
  volatile int error = 0;
  pid_t child = vfork();
  if (child == 0) {
    becomeProgram(arguments.data(), environment.data(), log.c_str(), folder, parent, before);
    error = errno;
    _exit(127);
  }
  if (child < 0)
    error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child > 0 && error != 0)
    waitpid(child, nullptr, 0);
  if (error != 0)
    return strerror(error);
  pid = child;
  return "";
}

std::optional<int> ChildProcess::poll() {
  if (pid < 0)
    return -1;
  int status = 0;
  pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR))
    return std::nullopt;
  pid = -1;
  return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::optional<int> ChildProcess::wait(double timeoutSeconds) {
  auto start = std::chrono::steady_clock::now();
  while (true) {
    if (std::optional<int> status = poll())
      return status;
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    throwIfCancelled(); // and so it is stopped
    if (taken.count() > timeoutSeconds)
      return std::nullopt;
    // Longer pauses would cost time: most runs take about 20 ms.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void ChildProcess::abandon() {
  if (pid < 0)
    return;
  kill(-pid, SIGKILL);
  // The waiting thread must not handle the process's signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([ended = pid] {
      while (waitpid(ended, nullptr, 0) < 0 && errno == EINTR) {
      }
    }).detach();
    pid = -1;
  } catch (const std::system_error &) {
    stop();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ChildProcess::stop() {
  if (pid < 0)
    return;
  kill(-pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid = -1;
}
