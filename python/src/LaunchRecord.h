// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of a compiled kernel, and the data that it needs:
//
//     Variant       one kernel, what a launch of it returns, and what it was compiled with
//     KernelFamily  the variants of one specialisation (tessera._C.KernelFamily);
//                   include/tessera/Compiler/KernelFamily.h chooses one for each launch
//     LaunchRecord  a family, and what is the same for launches with equal signatures: device,
//                   stream, threads, options (tessera._C.LaunchRecord)
//
// In each slow launch, Python makes a record (runtime/jit.py) and launches by it. A dispatcher then
// stores the record with the signature, and later launches use it without Python. Both paths call
// `launchRecord`; only the slow one can make variants.

#ifndef TESSERA_PYTHON_LAUNCHRECORD_H
#define TESSERA_PYTHON_LAUNCHRECORD_H

#include "Checks.h"
#include "Handles.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::python {

struct Variant {
  TsrKernel *kernel = nullptr; ///< null: there is none
  py::object owner;            ///< of `kernel`
  py::object result;           ///< what a launch returns
  py::object read;             ///< the tuple that has what is checked
  Checks checks;

  Variant() = default;
  /// Made from the tuple (result, kernel, checks).
  explicit Variant(const py::tuple &tuple);
  bool isCurrent() const { return kernel && checks.hold(); }
  int traverse(visitproc visit, void *arg) const;
};

/// The variants of one specialisation. The GIL guards it.
struct KernelFamily {
  PyObject_HEAD;
  TsrFamily *policy;
  bool hasChoice; ///< as tsr_family_has_choice
  std::array<Variant, TSR_NUM_VARIANTS> variants;

  /// Never changes once it is set, so a launch needs no reference to it.
  const Variant &getUsual() const { return variants[TSR_VARIANT_USUAL]; }
};

struct LaunchRecord {
  PyObject_HEAD;
  KernelFamily *family; ///< null in a configuration that is looked up alone
  PyObject *slots;      ///< a sequence: what the arguments became
  PyObject *options;    ///< a dict, for grid functions
  mutable PyObject
      *meta;            ///< `options` and parameters' names, for grid functions; made by the first
  PyObject *stream;     ///< a number, or a function of the device that returns the current one
  PyObject *choice;     ///< the configuration of a tuned kernel, or null
  uint64_t fixedStream; ///< `stream`, if it is a number
  int32_t numThreads;   ///< 0: the default
  int32_t device;       ///< a GPU, or -1 for the CPU

  bool findsStream() const { return !PyLong_Check(stream); }
};

extern PyTypeObject *launchRecordType;

/// Hooks of launches.
class LaunchListener {
public:
  /// Called before the first variant is launched. Returns an object that `leave` receives after the
  /// launch, unless that fails.
  virtual py::object enter(const Variant &variant) = 0;
  virtual void leave(const py::object &told) = 0;

protected:
  ~LaunchListener() = default;
};

/// A launch by a record.
struct LaunchCall {
  const int32_t *extents; ///< three
  const uint64_t *slots;
  size_t numSlots;
  uint64_t stream = 0;
  const TsrArgumentMemory *memory = nullptr; ///< to check accesses on the CPU; null: not checked
  LaunchListener *listener = nullptr;        ///< null: no hooks
  /// Called with a TsrVariant that is missing. Returns (result, kernel, checks), or None if a
  /// division cannot be compiled. If null, missing variants are not made.
  PyObject *make = nullptr;
  bool isWarm = false; ///< what is not there is left to the slow way
};

struct LaunchOutcome {
  py::object result; ///< null: nothing has run
  /// The status of the last launch; TSR_OK or a refusal if a variant is missing.
  TsrStatus status;
};

/// Launches over a grid. Chooses a variant, and tries another where one refuses. The usual variant
/// must exist and be current. Throws the exceptions of Python.
LaunchOutcome launchRecord(const LaunchRecord &record, const LaunchCall &call);

} // namespace tessera::python

#endif // TESSERA_PYTHON_LAUNCHRECORD_H
