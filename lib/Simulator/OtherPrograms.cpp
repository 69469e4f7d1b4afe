// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OtherPrograms.h"

#include "llvm/ADT/STLExtras.h"

using namespace tessera;
using namespace tessera::simulator;

/// So many bits of a program's number select the child of a node.
static constexpr unsigned kBits = 4, kFanOut = 1 << kBits;

static unsigned getChild(uint32_t program, unsigned height) {
  return program >> (kBits * (height - 1)) & (kFanOut - 1);
}

/// True if a tree of this height has a place for a program.
static bool hasPlace(uint32_t program, unsigned height) {
  return uint64_t(program) >> (kBits * height) == 0;
}

void OtherPrograms::grow(unsigned newHeight) {
  for (; height < newHeight; ++height) {
    if (!root)
      continue;
    auto above = std::make_shared<Node>();
    above->children.resize(kFanOut);
    above->children.front() = std::move(root);
    root = std::move(above);
  }
}

OtherPrograms::NodePtr OtherPrograms::joinLeaves(const NodePtr &a, const NodePtr &b) {
  auto joined = std::make_shared<Node>();
  const AcquiredAgent *left = a->agents.data(), *leftEnd = left + a->agents.size();
  const AcquiredAgent *right = b->agents.data(), *rightEnd = right + b->agents.size();
  while (left != leftEnd || right != rightEnd) {
    if (right == rightEnd || (left != leftEnd && left->agent < right->agent)) {
      joined->agents.push_back(*left++);
    } else if (left == leftEnd || right->agent < left->agent) {
      joined->agents.push_back(*right++);
    } else {
      joined->agents.push_back(*left++);
      joined->agents.back().acquired.join((right++)->acquired);
    }
  }
  return joined->agents == a->agents ? a : joined->agents == b->agents ? b : joined;
}

OtherPrograms::NodePtr OtherPrograms::join(const NodePtr &a, const NodePtr &b, unsigned height) {
  if (a == b || !b)
    return a;
  if (!a)
    return b;
  if (height == 0)
    return joinLeaves(a, b);
  auto joined = std::make_shared<Node>();
  joined->children.reserve(kFanOut);
  for (auto [left, right] : llvm::zip_equal(a->children, b->children))
    joined->children.push_back(join(left, right, height - 1));
  return joined->children == a->children ? a : joined->children == b->children ? b : joined;
}

void OtherPrograms::join(const OtherPrograms &other) {
  if (!other.root)
    return;
  grow(other.height);
  OtherPrograms grown = other;
  grown.grow(height);
  root = join(root, grown.root, height);
}

void OtherPrograms::join(uint32_t program, llvm::ArrayRef<AcquiredAgent> agents) {
  if (agents.empty())
    return;
  unsigned needed = height;
  while (!hasPlace(program, needed))
    ++needed;
  grow(needed);
  auto leaf = std::make_shared<Node>();
  leaf->agents = agents.vec();
  NodePtr path = std::move(leaf);
  for (unsigned above = 1; above <= height; ++above) {
    auto node = std::make_shared<Node>();
    node->children.resize(kFanOut);
    node->children[getChild(program, above)] = std::move(path);
    path = std::move(node);
  }
  root = join(root, path, height);
}

OtherPrograms::NodePtr OtherPrograms::erase(const NodePtr &node, uint32_t program,
                                            unsigned height) {
  if (!node || height == 0)
    return nullptr;
  const NodePtr &child = node->children[getChild(program, height)];
  NodePtr left = erase(child, program, height - 1);
  if (left == child)
    return node;
  auto rest = std::make_shared<Node>(*node);
  rest->children[getChild(program, height)] = std::move(left);
  return llvm::any_of(rest->children, [](const NodePtr &child) { return child != nullptr; })
             ? rest
             : nullptr;
}

void OtherPrograms::erase(uint32_t program) {
  if (hasPlace(program, height))
    root = erase(root, program, height);
}

template <typename F> OtherPrograms::NodePtr OtherPrograms::map(const NodePtr &node, F change) {
  if (!node)
    return nullptr;
  auto changed = std::make_shared<Node>(*node);
  for (AcquiredAgent &item : changed->agents)
    change(item.acquired);
  for (NodePtr &child : changed->children)
    child = map(child, change);
  return changed->agents == node->agents && changed->children == node->children ? node : changed;
}

void OtherPrograms::fence(bool inShared, bool inGlobal) {
  root = map(root, [=](Acquired &acquired) {
    if (inShared)
      acquired.fencedShared = acquired.clock;
    if (inGlobal)
      acquired.fenced = acquired.clock;
  });
}

OtherPrograms OtherPrograms::asReads() const {
  OtherPrograms known = *this;
  known.root = map(root, [](Acquired &acquired) {
    Clock reads = std::max(acquired.clock, acquired.reads);
    acquired = {};
    acquired.reads = reads;
  });
  return known;
}

llvm::ArrayRef<AcquiredAgent> OtherPrograms::lookup(uint32_t program) const {
  if (!hasPlace(program, height))
    return {};
  const Node *node = root.get();
  for (unsigned above = height; node && above > 0; --above)
    node = node->children[getChild(program, above)].get();
  return node ? llvm::ArrayRef<AcquiredAgent>(node->agents) : llvm::ArrayRef<AcquiredAgent>();
}

Acquired OtherPrograms::lookup(uint32_t program, unsigned agent) const {
  for (const AcquiredAgent &item : lookup(program))
    if (item.agent == agent)
      return item.acquired;
  return {};
}
