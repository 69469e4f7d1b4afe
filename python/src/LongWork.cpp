// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The worker thread of the main thread. It lives on after a job, since the core caches expensive
// objects per thread for the next compilation. Starting a thread would cost a small part of a
// compilation, too.

#include "LongWork.h"

#include "Interpreter.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>

using namespace tessera::python;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSignalInterval = std::chrono::milliseconds(50);
constexpr size_t kStackBytes = 16 << 20;

/// A request of one thread to others to end their compilations.
struct Cancellation {
  int32_t isCancelled = 0; ///< read by the core

  void cancel() { __atomic_store_n(&isCancelled, 1, __ATOMIC_RELAXED); }
};

/// The cancellation that the calling thread obeys. The main thread has none, since signals
/// interrupt it.
thread_local std::shared_ptr<Cancellation> threadCancellation;

struct Job {
  std::function<TsrStatus()> work;
  std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  Owned<TsrCompileClock, tsr_compile_clock_destroy> clock; ///< if somebody wants to know
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  Outcome outcome;

  void run() {
    tsr_set_cancellation(&cancellation->isCancelled);
    tsr_set_compile_clock(clock.get());
    Outcome found;
    found.status = work();
    try {
      if (found.status != TSR_OK)
        found.error = tsr_last_error();
    } catch (const std::bad_alloc &) {
      found.status = TSR_OUT_OF_MEMORY;
    }
    tsr_set_cancellation(nullptr);
    tsr_set_compile_clock(nullptr);
    end(std::move(found));
  }

  void end(Outcome found) {
    std::lock_guard<std::mutex> lock(mutex);
    outcome = std::move(found);
    isDone = true;
    changed.notify_all();
  }
};

/// A thread that does one job after the other, until it is retired.
class Worker {
public:
  /// Null if the system gives no thread.
  static Worker *start();
  void submit(std::shared_ptr<Job> job);
  /// After its present job, the thread ends and the worker with it.
  void retire();

private:
  static void *main(void *self);
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<Job> next;
  bool isRetired = false;
  bool hasData = false; ///< there was memory for the thread-local data of what it calls
};

/// More than the thread-local data of the core and of the C++ library in it.
constexpr size_t kThreadDataBytes = 16 << 10;

Worker *Worker::start() {
  auto worker = std::make_unique<Worker>();
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return nullptr;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // Only the main thread handles signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool isStarted = pthread_create(&thread, &attributes, &Worker::main, worker.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return isStarted ? worker.release() : nullptr;
}

void *Worker::main(void *self) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "tessera");
#endif
  std::unique_ptr<Worker> worker(static_cast<Worker *>(self));
  worker->work();
  return nullptr;
}

void Worker::submit(std::shared_ptr<Job> job) {
  std::lock_guard<std::mutex> lock(mutex);
  next = std::move(job);
  changed.notify_one();
}

void Worker::retire() {
  std::lock_guard<std::mutex> lock(mutex);
  isRetired = true;
  changed.notify_one();
}

void Worker::work() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return next || isRetired; });
      if (!next)
        return;
      job = std::move(next);
    }
    // Where there is no memory for a thread's data when it is first touched, glibc ends the
    // process.
    if (!hasData) {
      void *volatile room = std::malloc(kThreadDataBytes); // or the compiler would drop both calls
      hasData = room;
      std::free(room);
    }
    if (hasData)
      job->run();
    else
      job->end({TSR_OUT_OF_MEMORY, {}});
  }
}

/// The id of threading.main_thread() in this process.
unsigned long mainThread = 0;

/// The worker of the main thread, which alone uses it. A forked child has none.
Worker *currentWorker = nullptr;
unsigned numForks = 0;

void forgetWorker() {
  currentWorker = nullptr;
  mainThread = PyThread_get_thread_ident(); // a child's main thread is the one that forked
  ++numForks;
}

/// True if a thread's stack fits into the address space. If it does not, the work is refused
/// instead of done on the main thread. The main thread's stack grows on demand, and the process
/// ends if it cannot grow.
bool hasRoomForStack() {
  void *room = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return false;
  munmap(room, kStackBytes);
  return true;
}

Worker *findWorker() {
  if (!currentWorker)
    currentWorker = Worker::start();
  return currentWorker;
}

bool isMainThread() { return PyThread_get_thread_ident() == mainThread; }

/// Called without the GIL by a launch. An exception of a handler remains set in the thread.
int checkSignals() {
  if (!isMainThread())
    return 0;
  PyGILState_STATE state = callPython([] { return PyGILState_Ensure(); });
  int result = callPython([] { return PyErr_CheckSignals(); });
  PyGILState_Release(state);
  return result;
}

class Stopwatch {
public:
  explicit Stopwatch(const SlowNotice &slow) : slow(slow), isPending(slow.seconds > 0) {}

  void look(TsrCompileClock *clock) {
    std::chrono::duration<double> taken = Clock::now() - start;
    if (!isPending || taken.count() < slow.seconds)
      return;
    isPending = false;
    const char *json = nullptr;
    check(tsr_compile_clock_print(clock, &json));
    py::object parts = parseJSON(json);
    callPython([&] { slow.notice(parts); });
  }

private:
  const SlowNotice &slow;
  bool isPending;
  Clock::time_point start = Clock::now();
};

} // namespace

void tessera::python::registerLongWork(py::module_ &module) {
  py::class_<Cancellation, std::shared_ptr<Cancellation>>(module, "Cancellation",
                                                          "Asks threads to end what they compile.")
      .def(py::init<>())
      .def("cancel", &Cancellation::cancel,
           "From now on, what threads of this compile is an error, as soon as a pass ends.");
  module.def(
      "compile_until",
      [](std::shared_ptr<Cancellation> cancellation) {
        threadCancellation = std::move(cancellation);
      },
      py::arg("cancellation"),
      "Have it end what the calling thread compiles, if it has no signals.");
}

void tessera::python::lookForSignalsInLaunches() {
  py::module_ threading = py::module_::import("threading");
  mainThread = threading.attr("main_thread")().attr("ident").cast<unsigned long>();
  pthread_atfork(nullptr, nullptr, forgetWorker);
  tsr_set_interrupt_check(checkSignals);
}

Outcome tessera::python::runLongWork(std::function<TsrStatus()> work, const SlowNotice &slow) {
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  if (slow.seconds > 0) {
    TsrCompileClock *clock = nullptr;
    check(tsr_compile_clock_create(&clock));
    job->clock.reset(clock);
  }
  Stopwatch stopwatch(slow);
  Worker *worker = isMainThread() ? findWorker() : nullptr;
  if (!worker) {
    if (isMainThread() && !hasRoomForStack())
      return {tsr_fail_without_memory(), tsr_last_error()};
    if (threadCancellation)
      job->cancellation = threadCancellation;
    {
      WithoutGIL released;
      job->run();
    }
    stopwatch.look(job->clock.get());
    return job->outcome;
  }
  worker->submit(job);
  unsigned forksBefore = numForks;
  for (;;) {
    {
      WithoutGIL released;
      std::unique_lock<std::mutex> lock(job->mutex);
      if (job->changed.wait_for(lock, kSignalInterval, [&] { return job->isDone; }))
        return std::move(job->outcome);
    }
    try {
      if (callPython([] { return PyErr_CheckSignals(); }) < 0)
        throw py::error_already_set();
      if (numForks != forksBefore)
        throw std::runtime_error("a signal handler forked: the child has no compilation to await");
      stopwatch.look(job->clock.get());
    } catch (...) {
      job->cancellation->cancel();
      if (currentWorker == worker) {
        worker->retire();
        currentWorker = nullptr;
      }
      throw;
    }
  }
}

void tessera::python::check(const Outcome &outcome) {
  check(outcome.status, outcome.error.c_str());
}
