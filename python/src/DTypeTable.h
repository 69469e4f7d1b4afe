// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table in which launches look up element types.

#ifndef TESSERA_PYTHON_DTYPETABLE_H
#define TESSERA_PYTHON_DTYPETABLE_H

#include <unordered_map>
#include <utility>

namespace tessera::python {

/// Maps the names of element types to ids. Caches the last lookup, since nearly every array has the
/// type of the last one.
template <typename Key> class DTypeTable {
public:
  /// False if the name is known already.
  bool learn(Key name, char id) { return ids.emplace(name, id).second; }
  bool find(Key name, char &id) {
    if (!last || last->first != name) {
      auto found = ids.find(name);
      if (found == ids.end())
        return false;
      last = &*found;
    }
    id = last->second;
    return true;
  }

private:
  std::unordered_map<Key, char> ids;
  const std::pair<const Key, char> *last = nullptr;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_DTYPETABLE_H
