// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Order/MemoryOrder.h"

#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Analysis/Boxes/AccessReach.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Accesses of ops
//===----------------------------------------------------------------------===//

/// For a single op. A function does what is in it.
static void addAccesses(Operation *op, SmallVectorImpl<OpAccess> &accesses) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects) {
    if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() && !isa<CallableOpInterface>(op))
      accesses.push_back({op, Value(), /*reads=*/true, /*writes=*/true, /*resource=*/nullptr});
    return;
  }
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  size_t first = accesses.size();
  for (const MemoryEffects::EffectInstance &instance : instances) {
    // A new buffer has no contents.
    if (isa<MemoryEffects::Allocate>(instance.getEffect()))
      continue;
    bool reads = isa<MemoryEffects::Read>(instance.getEffect());
    auto *known =
        std::find_if(accesses.begin() + first, accesses.end(), [&](const OpAccess &access) {
          return access.place == instance.getValue() && access.resource == instance.getResource();
        });
    if (known == accesses.end()) {
      accesses.push_back({op, instance.getValue(), false, false, instance.getResource()});
      known = &accesses.back();
    }
    (reads ? known->reads : known->writes) = true;
  }
}

/// For an op and all within it, events too.
static SmallVector<OpAccess> getAllAccesses(Operation *op) {
  SmallVector<OpAccess> accesses;
  op->walk([&](Operation *inner) { addAccesses(inner, accesses); });
  return accesses;
}

SmallVector<OpAccess> tessera::getMemoryAccesses(Operation *op) {
  SmallVector<OpAccess> accesses = getAllAccesses(op);
  llvm::erase_if(accesses, [](const OpAccess &access) { return !access.isOfMemory(); });
  return accesses;
}

/// The same without what ops only order, beside an access that they say the place of.
static SmallVector<OpAccess> getPlainAccesses(Operation *op) {
  SmallVector<OpAccess> accesses = getMemoryAccesses(op);
  DenseSet<std::pair<Operation *, SideEffects::Resource *>> withPlace;
  for (const OpAccess &access : accesses)
    if (!access.isAnywhere())
      withPlace.insert({access.op, access.resource});
  llvm::erase_if(accesses, [&](const OpAccess &access) {
    return access.isAnywhere() && withPlace.contains({access.op, access.resource});
  });
  return accesses;
}

bool tessera::mayWriteMemory(Operation *op) {
  return llvm::any_of(getMemoryAccesses(op), [](const OpAccess &access) { return access.writes; });
}

bool tessera::mayMeetOtherPrograms(Operation *op) {
  return llvm::any_of(getMemoryAccesses(op), [](const OpAccess &access) {
    bool isGlobal = !access.resource || isa<SideEffects::DefaultResource>(access.resource);
    if (!isGlobal || access.isAnywhere())
      return isGlobal;
    // A buffer is the program's own.
    return access.reads && access.writes && !isa<MemRefType>(access.place.getType());
  });
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

static bool isPointerLike(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  return isa<tile::PointerType, tile::BlockPointerType, tile::DescriptorType>(type);
}

namespace {

/// Follows pointers back to where they come from.
class BaseWalk {
public:
  PointerBases run(Value pointers) {
    add(pointers);
    while (!work.empty())
      visit(work.pop_back_val());
    return std::move(bases);
  }

private:
  void add(Value value) {
    if (seen.insert(value).second)
      work.push_back(value);
  }
  void visit(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      visitArgument(argument);
    else
      visitResult(cast<OpResult>(value));
  }
  void visitArgument(BlockArgument argument);
  void visitResult(OpResult result);

  PointerBases bases;
  SmallVector<Value> work;
  llvm::SmallDenseSet<Value, 16> seen;
};

} // namespace

void BaseWalk::visitArgument(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<tile::FuncOp>(owner)) {
    if (function.isKernel())
      bases.arguments.insert(argument);
    else
      bases.hasOthers = true;
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(owner)) {
    unsigned index = argument.getArgNumber() - loop.getNumInductionVars();
    add(loop.getInitArgs()[index]);
    return add(loop.getYieldedValues()[index]);
  }
  if (auto loop = dyn_cast<scf::WhileOp>(owner)) {
    unsigned index = argument.getArgNumber();
    if (argument.getOwner() != loop.getBeforeBody())
      return add(loop.getConditionOp().getArgs()[index]);
    add(loop.getInits()[index]);
    return add(loop.getYieldOp().getOperand(index));
  }
  bases.hasOthers = true;
}

void BaseWalk::visitResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned index = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    add(loop.getInitArgs()[index]);
    return add(loop.getYieldedValues()[index]);
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return add(loop.getConditionOp().getArgs()[index]);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    add(branch.thenYield().getOperand(index));
    return add(branch.elseYield().getOperand(index));
  }
  // Foreign code, memory and integers may give any pointer. All other ops move or select their
  // operands.
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op) || op->hasTrait<tile::ForeignCode>()) {
    bases.hasOthers = true;
    return;
  }
  bool hasPointers = false;
  for (Value operand : op->getOperands())
    if (isPointerLike(operand)) {
      hasPointers = true;
      add(operand);
    }
  bases.hasOthers |= !hasPointers;
}

PointerBases tessera::getPointerBases(Value pointers) { return BaseWalk().run(pointers); }

//===----------------------------------------------------------------------===//
// Boxes of one array
//===----------------------------------------------------------------------===//

/// How far apart two boxes are along each dimension; nothing if that is no number.
static std::optional<SmallVector<int64_t>> getDistances(const BoxAccess &a, const BoxAccess &b) {
  if (a.getDims().size() != b.getDims().size() || a.getElementType() != b.getElementType())
    return std::nullopt;
  SmallVector<int64_t> distances;
  for (auto [left, right] : llvm::zip(a.getDims(), b.getDims())) {
    if (left.stride != right.stride)
      return std::nullopt;
    std::optional<ScalarPolynomial> apart = right.coordinate.minus(left.coordinate);
    std::optional<int64_t> distance = apart ? apart->getConstant() : std::nullopt;
    if (!distance)
      return std::nullopt;
    distances.push_back(*distance);
  }
  return distances;
}

/// Values that must not be negative for two boxes of one array to be disjoint; nothing if they may
/// overlap. One row after another, both are within a box that reaches from the first to the last of
/// them. Its elements differ if their places do, if each row of it ends before the next one begins.
static std::optional<SmallVector<LaunchExpr, 0>> findApartIf(const BoxAccess &a, const BoxAccess &b,
                                                             Operation *across) {
  if (across)
    for (const BoxAccess *box : {&a, &b})
      for (const BoxDim &dim : box->getDims())
        if (!dim.coordinate.isInvariant(across))
          return std::nullopt;
  std::optional<SmallVector<int64_t>> distances = getDistances(a, b);
  if (!distances)
    return std::nullopt;
  bool isApart = false;
  MLIRContext *context = a.getElementType().getContext();
  // Strides of tiles are in any order; the innermost is last. Only pairs of which one is
  // the row of the other are known not to be.
  SmallVector<LaunchExpr, 0> conditions;
  LaunchExpr reach = getAffineConstantExpr(0, context);
  for (unsigned dim = a.getDims().size(); dim-- > 0;) {
    const BoxDim &left = a.getDims()[dim], &right = b.getDims()[dim];
    int64_t distance = (*distances)[dim];
    isApart |= distance >= left.tileExtent || -distance >= right.tileExtent;
    int64_t begin = std::min<int64_t>(0, distance),
            end = std::max(left.tileExtent, distance + right.tileExtent);
    // A step of this dimension goes beyond all that lies further in.
    if (end - begin > 1) {
      LaunchExpr room = left.stride - reach - 1;
      if (auto constant = dyn_cast<AffineConstantExpr>(room); !constant)
        conditions.push_back(room);
      else if (constant.getValue() < 0)
        return std::nullopt;
      reach = reach + left.stride * (end - begin - 1);
    }
  }
  if (!isApart)
    return std::nullopt;
  return conditions;
}

/// The least distance of a coordinate between two iterations of a loop. 0: it is the same in all of
/// them. Nothing if it is neither that nor a multiple of the loop's counter beside what is the
/// same.
static std::optional<int64_t> getLeastStep(const ScalarPolynomial &coordinate, scf::ForOp loop) {
  int64_t scale = 0;
  for (const ScalarTerm &term : coordinate.getTerms()) {
    auto isOfLoop = [&](ScalarFactor factor) { return factor.value == loop.getInductionVar(); };
    // The loop's step is positive.
    bool isOfCounter =
        llvm::count_if(term.factors, isOfLoop) == 1 &&
        (term.factors.size() == 1 ||
         (term.factors.size() == 2 && llvm::any_of(term.factors, [&](ScalarFactor factor) {
            return !factor.isIteration && factor.value == loop.getStep();
          })));
    if (!isOfCounter && llvm::any_of(term.factors, [&](ScalarFactor factor) {
          return loop->isAncestor(factor.value.getParentBlock()->getParentOp());
        }))
      return std::nullopt;
    // The counter and the iteration's number are two factors, of which a sum may stay.
    if (isOfCounter && scale != 0)
      return std::nullopt;
    if (isOfCounter)
      scale = term.scale;
  }
  if (scale == std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return std::abs(scale);
}

/// Values that must not be negative for the boxes of an access to be disjoint in any two iterations
/// of a loop; nothing if they may overlap. One coordinate steps over the box, and a step of it goes
/// beyond all that the box has along other dimensions.
static std::optional<SmallVector<LaunchExpr, 0>> findApartInIterations(const BoxAccess &box,
                                                                       scf::ForOp loop) {
  SmallVector<LaunchExpr, 0> conditions;
  LaunchExpr reach = getAffineConstantExpr(0, box.getElementType().getContext());
  bool isApart = false, isEndless = false;
  // The innermost is last, as in `findApartIf`.
  for (const BoxDim &dim : llvm::reverse(box.getDims())) {
    std::optional<int64_t> step = getLeastStep(dim.coordinate, loop);
    if (!step || (*step != 0 && (isApart || *step < dim.tileExtent)))
      return std::nullopt;
    if (*step == 0 && dim.tileExtent == 1)
      continue;
    // Nothing is moved beyond the array.
    auto stride = dyn_cast<AffineConstantExpr>(dim.stride);
    auto extent = dyn_cast<AffineConstantExpr>(dim.extent);
    LaunchExpr size = getAffineConstantExpr(dim.tileExtent, dim.stride.getContext());
    if (extent && extent.getValue() < dim.tileExtent)
      size = dim.extent;
    else if (!extent && stride)
      size = dim.extent;
    // The dimension further in goes on to any element.
    if (isEndless)
      return std::nullopt;
    LaunchExpr room = dim.stride - reach - 1;
    if (auto constant = dyn_cast<AffineConstantExpr>(room); !constant)
      conditions.push_back(room);
    else if (constant.getValue() < 0)
      return std::nullopt;
    isEndless = *step != 0;
    isApart |= isEndless;
    reach = reach + dim.stride * (size - 1);
  }
  if (!isApart)
    return std::nullopt;
  return conditions;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

const std::optional<BoxAccess> &MemoryOrder::getBox(Operation *op) {
  auto [known, isNew] = boxes.try_emplace(op);
  if (!isNew)
    return known->second;
  std::optional<BoxAccess> box = getBoxAccess(op, analysis);
  return boxes[op] = std::move(box);
}

bool OpAccess::isOfMemory() const { return !isa_and_present<tile::Events>(resource); }

void MemoryOrder::compare(const OpAccess &moved, const OpAccess &other, Operation *across,
                          bool byLanes, MemoryOrderAnswer &answer) {
  if (answer.isOrdered() || (!moved.writes && !other.writes) ||
      (moved.resource && other.resource && moved.resource != other.resource))
    return;
  AccessPair pair{moved, other, {}};
  auto order = [&] {
    answer.kind = MemoryOrderAnswer::Ordered;
    answer.pairs = {pair};
  };
  if (moved.isAnywhere() || other.isAnywhere())
    return order();
  // An op in other iterations has other addresses by the same pointers.
  if (auto loop = dyn_cast_if_present<scf::ForOp>(across); loop && moved.op == other.op && !byLanes)
    if (const std::optional<BoxAccess> &box = getBox(moved.op); box && !box->isFoundByKernel())
      if (std::optional<SmallVector<LaunchExpr, 0>> apart = findApartInIterations(*box, loop)) {
        if (apart->empty())
          return;
        pair.apartIf = std::move(*apart);
        answer.kind = MemoryOrderAnswer::IndependentIf;
        answer.pairs.push_back(std::move(pair));
        return;
      }
  if (moved.place == other.place && !byLanes)
    return order();
  // A buffer is no array.
  auto isBuffer = [](Value place) { return isa<MemRefType>(place.getType()); };
  if ((isBuffer(moved.place) && isPointerLike(other.place)) ||
      (isPointerLike(moved.place) && isBuffer(other.place)))
    return;
  if (!isPointerLike(moved.place) || !isPointerLike(other.place))
    return order();
  BlockArgument base = getPointerBases(moved.place).getSingle();
  if (base && moved.place != other.place && base == getPointerBases(other.place).getSingle()) {
    const std::optional<BoxAccess> first = getBox(moved.op), &second = getBox(other.op);
    if (first && second)
      if (std::optional<SmallVector<LaunchExpr, 0>> apart = findApartIf(*first, *second, across)) {
        if (apart->empty())
          return;
        pair.apartIf = std::move(*apart);
      }
  }
  answer.kind = MemoryOrderAnswer::IndependentIf;
  answer.pairs.push_back(std::move(pair));
}

MemoryOrderAnswer MemoryOrder::compareAll(ArrayRef<OpAccess> moved, ArrayRef<OpAccess> others,
                                          Operation *across, bool byLanes) {
  MemoryOrderAnswer answer;
  for (const OpAccess &first : moved)
    for (const OpAccess &second : others)
      compare(first, second, across, byLanes, answer);
  return answer;
}

MemoryOrderAnswer MemoryOrder::mayPass(Operation *moved, Operation *other, Operation *across) {
  return compareAll(getAllAccesses(moved), getAllAccesses(other), across);
}

MemoryOrderAnswer MemoryOrder::mayInterleave(Operation *first, Operation *second) {
  return compareAll(getAllAccesses(second), getAllAccesses(first), /*across=*/nullptr,
                    /*byLanes=*/true);
}

MemoryOrderAnswer MemoryOrder::mayPassAccesses(Operation *moved, Operation *other,
                                               Operation *across) {
  return compareAll(getPlainAccesses(moved), getPlainAccesses(other), across);
}

//===----------------------------------------------------------------------===//
// Conditions of a launch
//===----------------------------------------------------------------------===//

bool LaunchRange::operator==(const LaunchRange &other) const {
  return argument == other.argument && elementBytes == other.elementBytes &&
         llvm::equal(dims, other.dims, [](const Dim &a, const Dim &b) {
           return a.extent == b.extent && a.stride == b.stride && a.first == b.first;
         });
}

template <typename T> static void addNew(SmallVectorImpl<T> &list, const T &item) {
  if (!llvm::is_contained(list, item))
    list.push_back(item);
}

/// More elements than memory has bytes, of which the addresses have 64 bits all the same.
static constexpr int64_t kEndlessExtent = int64_t(1) << 56;

/// True if a `while` counts a number up from one that is not negative. As part of an address it
/// does not wrap.
static bool isCountedUp(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop =
      argument ? dyn_cast<scf::WhileOp>(argument.getOwner()->getParentOp()) : scf::WhileOp();
  if (!loop)
    return false;
  auto findBefore = [&](Value other) -> BlockArgument {
    auto one = dyn_cast<BlockArgument>(other);
    if (one && one.getOwner() == loop.getAfterBody())
      one = dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[one.getArgNumber()]);
    return one && one.getOwner() == loop.getBeforeBody() ? one : BlockArgument();
  };
  BlockArgument before = findBefore(argument);
  if (!before)
    return false;
  APInt first, step;
  Value next = loop.getYieldOp().getOperand(before.getArgNumber());
  auto sum = next.getDefiningOp<arith::AddIOp>();
  return matchPattern(loop.getInits()[before.getArgNumber()], m_ConstantInt(&first)) &&
         first.isNonNegative() &&
         (findBefore(next) == before ||
          (sum && findBefore(sum.getLhs()) == before &&
           matchPattern(sum.getRhs(), m_ConstantInt(&step)) && step.isNonNegative()));
}

/// True if a part of an address is not negative, as far as need be because arguments are not.
static bool isNotNegative(const ScalarTerm &term, AccessAnalysis &analysis,
                          LaunchConditions &conditions) {
  return term.scale > 0 && llvm::all_of(term.factors, [&](const ScalarFactor &factor) {
           if (factor.isIteration || isCountedUp(factor.value) ||
               analysis.getRanges().isNonNegative(factor.value))
             return true;
           auto argument = dyn_cast<BlockArgument>(factor.value);
           if (!argument || !isa<tile::FuncOp>(argument.getOwner()->getParentOp()) ||
               argument.getParentRegion()->getParentOfType<tile::FuncOp>().getArgAttr(
                   argument.getArgNumber(), tile::kGridExtentAttr))
             return false;
           addNew(conditions.notNegative,
                  getAffineSymbolExpr(argument.getArgNumber(), argument.getContext()));
           return true;
         });
}

std::optional<LaunchRange> tessera::getLaunchRange(const OpAccess &access, AccessAnalysis &analysis,
                                                   LaunchConditions &conditions) {
  auto op = dyn_cast<tile::AccessOpInterface>(access.op);
  if (access.isAnywhere() || !op || access.place != op.getPtr())
    return std::nullopt;
  std::optional<AccessReach> reach = getAccessReach(access.op, op.getPtr(), op.getMask(), analysis);
  if (!reach)
    return std::nullopt;
  LaunchRange range;
  range.argument = reach->base.getArgNumber();
  range.elementBytes = reach->elementBytes;
  for (const AccessReach::Dim &dim : reach->dims) {
    SmallVector<ScalarTerm> endless;
    std::optional<std::string> first =
        dim.first.isZero() ? std::string() : writeProgramBound(dim.first, analysis, endless);
    if (!first)
      return std::nullopt;
    range.dims.push_back({dim.extent, dim.stride, std::move(*first)});
    if (endless.empty())
      continue;
    // From there on, up to where no memory is.
    auto stride = dyn_cast<AffineConstantExpr>(dim.stride);
    if (!stride || stride.getValue() != 1 || !llvm::all_of(endless, [&](const ScalarTerm &term) {
          return isNotNegative(term, analysis, conditions);
        }))
      return std::nullopt;
    MLIRContext *context = access.op->getContext();
    range.dims.push_back({getAffineConstantExpr(kEndlessExtent, context), stride, {}});
  }
  for (LaunchExpr expr : reach->conditions)
    addNew(conditions.notNegative, expr);
  for (const std::string &bound : reach->programBounds)
    addNew(conditions.programBounds, bound);
  conditions.limitPrograms(reach->mostPrograms);
  return range;
}

static bool isEndless(const LaunchRange &range) {
  return llvm::any_of(range.dims, [](const LaunchRange::Dim &dim) {
    auto extent = dyn_cast<AffineConstantExpr>(dim.extent);
    return extent && extent.getValue() == kEndlessExtent;
  });
}

void LaunchConditions::limitPrograms(int64_t most) {
  if (most)
    mostPrograms = mostPrograms ? std::min(mostPrograms, most) : most;
}

bool LaunchConditions::add(const MemoryOrderAnswer &answer, AccessAnalysis &analysis,
                           AccessPair &why) {
  if (answer.isOrdered()) {
    why = answer.getReason();
    return false;
  }
  for (const AccessPair &pair : answer.getConditions()) {
    if (!pair.apartIf.empty()) {
      for (LaunchExpr expr : pair.apartIf)
        addNew(notNegative, expr);
      continue;
    }
    std::optional<LaunchRange> first = getLaunchRange(pair.moved, analysis, *this),
                               second = getLaunchRange(pair.other, analysis, *this);
    // Two ranges without a known end overlap, as far as a launch knows.
    if (!first || !second || first->argument == second->argument ||
        (isEndless(*first) && isEndless(*second))) {
      why = pair;
      return false;
    }
    if (first->argument > second->argument)
      std::swap(first, second);
    addNew(apart, {*first, *second});
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static Attribute makeRange(Builder &builder, unsigned numArguments, const LaunchRange &range) {
  SmallVector<AffineExpr> extents, strides;
  SmallVector<StringRef> firsts;
  for (const LaunchRange::Dim &dim : range.dims) {
    extents.push_back(dim.extent);
    strides.push_back(dim.stride);
    firsts.push_back(dim.first);
  }
  auto makeMap = [&](ArrayRef<AffineExpr> results) {
    return AffineMapAttr::get(AffineMap::get(0, numArguments, results, builder.getContext()));
  };
  SmallVector<NamedAttribute> entries = {
      builder.getNamedAttr("argument", builder.getI64IntegerAttr(range.argument)),
      builder.getNamedAttr("bytes", builder.getI64IntegerAttr(range.elementBytes)),
      builder.getNamedAttr("extents", makeMap(extents)),
      builder.getNamedAttr("strides", makeMap(strides)),
  };
  if (!llvm::all_of(firsts, [](StringRef first) { return first.empty(); }))
    entries.push_back(builder.getNamedAttr("firsts", builder.getStrArrayAttr(firsts)));
  return builder.getDictionaryAttr(entries);
}

ArrayAttr tessera::makeArraysApart(MLIRContext *context, unsigned numArguments,
                                   ArrayRef<LaunchRangePair> pairs) {
  Builder builder(context);
  SmallVector<Attribute> attributes;
  for (const auto &[first, second] : pairs)
    attributes.push_back(builder.getArrayAttr(
        {makeRange(builder, numArguments, first), makeRange(builder, numArguments, second)}));
  return builder.getArrayAttr(attributes);
}

static std::optional<LaunchRange> readRange(Attribute attribute) {
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  if (!dictionary)
    return std::nullopt;
  auto argument = dictionary.getAs<IntegerAttr>("argument");
  auto bytes = dictionary.getAs<IntegerAttr>("bytes");
  auto extents = dictionary.getAs<AffineMapAttr>("extents");
  auto strides = dictionary.getAs<AffineMapAttr>("strides");
  if (!argument || !bytes || !extents || !strides ||
      extents.getValue().getNumResults() != strides.getValue().getNumResults())
    return std::nullopt;
  LaunchRange range;
  range.argument = argument.getInt();
  range.elementBytes = bytes.getInt();
  for (auto [extent, stride] :
       llvm::zip(extents.getValue().getResults(), strides.getValue().getResults()))
    range.dims.push_back({extent, stride, {}});
  if (!dictionary.contains("firsts"))
    return range;
  auto firsts = dictionary.getAs<ArrayAttr>("firsts");
  if (!firsts || firsts.size() != range.dims.size() ||
      !llvm::all_of(firsts, llvm::IsaPred<StringAttr>))
    return std::nullopt;
  for (auto [dim, first] : llvm::zip_equal(range.dims, firsts.getAsRange<StringAttr>()))
    dim.first = first.str();
  return range;
}

std::optional<SmallVector<LaunchRangePair>> tessera::readArraysApart(Attribute attribute) {
  SmallVector<LaunchRangePair> pairs;
  if (!attribute)
    return pairs;
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list)
    return std::nullopt;
  for (Attribute pair : list) {
    auto both = dyn_cast<ArrayAttr>(pair);
    if (!both || both.size() != 2)
      return std::nullopt;
    std::optional<LaunchRange> first = readRange(both[0]), second = readRange(both[1]);
    if (!first || !second)
      return std::nullopt;
    pairs.push_back({*first, *second});
  }
  return pairs;
}
