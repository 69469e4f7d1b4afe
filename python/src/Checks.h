// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that a kernel is current: each value that its compilation read must be unchanged
// (frontend/reads.py).

#ifndef TESSERA_PYTHON_CHECKS_H
#define TESSERA_PYTHON_CHECKS_H

#include "Handles.h"

#include <cstdint>
#include <vector>

namespace tessera::python {

/// One value that a compilation read, and that must be unchanged since. The kinds are those of
/// frontend/reads.py. The tuple that it is made from owns all references.
struct Check {
  enum Kind { Entry, Cell, Function, Call, Attribute, Never } kind = Never;
  PyObject *owner = nullptr;
  PyObject *name = nullptr;
  PyObject *expected = nullptr; ///< null where there was nothing
  PyObject *defaults = nullptr, *keywordDefaults = nullptr;

  explicit Check(PyObject *tuple);
  bool holds() const;
};

/// True if all checks of a tuple hold. They are made once. A check that raises an AttributeError
/// does not hold; any other exception is thrown.
bool allHold(PyObject *tuple);

/// Checks that every launch makes.
///
/// Most are entries of dicts: globals of the kernel's module, attributes of modules. Each change of
/// a dict changes its version (PEP 509), so entries are looked up again only then. Dicts without a
/// version are looked up at each launch. From Python 3.14 on none has one. In 3.13, neither has the
/// dict of an object that keeps attributes in itself, since setting these changes no version.
class Checks {
public:
  Checks() = default;
  /// Made from a tuple of tuples, which must outlive this.
  explicit Checks(PyObject *tuple);

  /// As `allHold`.
  bool hold() const {
    return (entries.empty() || areDictsUnchanged() || holdEntries()) &&
           (others.empty() || holdOthers());
  }

private:
  struct Dict {
    PyObject *dict;
    uint64_t version; ///< with which its entries were looked up and held; 0 if there was none
  };
  /// 0 where it has none.
  static uint64_t getVersion(PyObject *dict) {
#if PY_VERSION_HEX < 0x030E0000
    const auto *known = reinterpret_cast<const PyDictObject *>(dict);
    // Deprecated for what it costs dicts, which have it up to 3.13.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return known->ma_values ? 0 : known->ma_version_tag;
#pragma GCC diagnostic pop
#else
    return 0;
#endif
  }
  bool areDictsUnchanged() const {
    for (const Dict &known : dicts)
      if (known.version == 0 || getVersion(known.dict) != known.version)
        return false;
    return true;
  }
  bool holdEntries() const;
  bool holdOthers() const;

  /// Kernels that read more dicts have them looked up each time.
  static constexpr size_t kMaxDicts = 16;

  std::vector<Check> entries, others;
  mutable std::vector<Dict> dicts; ///< those of `entries`, as far as that counts
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_CHECKS_H
