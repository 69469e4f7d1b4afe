// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts programs by vfork and exec. A fork copies the page tables of the process, which with torch
// loaded takes longer than most of the programs here. posix_spawn cannot request a signal at the
// parent's death.
//
// This process blocks until there is output. The system wakes a program on the CPU of the process
// that wrote to it, and keeps it there. If this process often looked for output, it would interrupt
// the program each time.

#include "tessera/Target/NVPTX/ChildProcess.h"

#include "tessera/Support/Cancellation.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
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
static void becomeProgram(char *const *command, char *const *environment, int output, int folder,
                          pid_t parent, const sigset_t &signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    return;
  // Make a process group, all of which stop() ends.
  if (setpgid(0, 0) != 0 || (folder >= 0 && fchdir(folder) != 0))
    return;
  umask(077);
  int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
    return;
  // Python ignores SIGPIPE, and a program would inherit that.
  struct sigaction byDefault = {};
  byDefault.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &byDefault, nullptr);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execve(command[0], command, environment);
}

/// Opens a pipe. Neither end is a standard stream, even if this process has closed its own.
static bool openPipe(int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  for (int &end : ends)
    if (end <= STDERR_FILENO) {
      int low = end;
      end = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
      close(low);
    }
  return ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

std::string ChildProcess::start(llvm::ArrayRef<std::string> command,
                                llvm::ArrayRef<std::string> variables, int folder) {
  stop();
  output.clear();
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

  int ends[2] = {-1, -1};
  if (!openPipe(ends)) {
    std::string reason = strerror(errno);
    for (int end : ends)
      if (end >= 0)
        close(end);
    return reason;
  }
  reader = ends[0];

  // No signal handler may run in the child, which shares this process's memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t parent = getpid();
  volatile int error = 0;
  pid_t child = vfork();
  if (child == 0) {
    becomeProgram(arguments.data(), environment.data(), ends[1], folder, parent, before);
    error = errno;
    _exit(127);
  }
  if (child < 0)
    error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (child > 0 && error != 0)
    waitpid(child, nullptr, 0);
  if (error != 0) {
    closeReader();
    return strerror(error);
  }
  pid = child;
  return "";
}

void ChildProcess::closeReader() {
  if (reader >= 0)
    close(reader);
  reader = -1;
}

/// Reads what is there. A program that prints without end must not take all memory.
void ChildProcess::readOutput() {
  constexpr size_t kMaxOutput = 16 << 20;
  char part[1 << 12];
  while (reader >= 0) {
    ssize_t count = read(reader, part, sizeof(part));
    if (count > 0) {
      if (output.size() < kMaxOutput)
        output.append(part, count);
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      closeReader();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void ChildProcess::sleep(std::chrono::microseconds limit) const {
  // Once the pipe is closed, the program is about to end.
  if (reader < 0)
    limit = std::min(limit, std::chrono::microseconds(100));
  pollfd file = {reader, POLLIN, 0};
  timespec time = {limit.count() / 1000000, limit.count() % 1000000 * 1000};
  ppoll(&file, reader < 0 ? 0 : 1, &time, nullptr);
}

std::optional<int> ChildProcess::poll() {
  if (pid < 0)
    return -1;
  int status = 0;
  pid_t ended = waitpid(pid, &status, WNOHANG);
  readOutput();
  if (ended == 0 || (ended < 0 && errno == EINTR))
    return std::nullopt;
  pid = -1;
  closeReader(); // processes that it has started may still have the other end
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
    sleep(std::chrono::milliseconds(5));
  }
}

void ChildProcess::abandon() {
  closeReader();
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
  closeReader();
  if (pid < 0)
    return;
  kill(-pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid = -1;
}
