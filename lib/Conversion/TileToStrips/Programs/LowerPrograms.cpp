// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-lower-programs: kernels become functions that run a range of programs.
//
// The other half of include/tessera/Runtime/Host/KernelABI.h: the offsets below are
// those of its structs.

#include "Nests/ScalarMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Machine/HostMachine.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSLOWERPROGRAMS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

constexpr int64_t kLaunchGrid = 8, kLaunchFault = 24, kLaunchPrinter = 32, kLaunchCachedBytes = 40,
                  kLaunchMemory = 48;
constexpr int64_t kFaultSite = 4, kFaultProgram = 8, kFaultOffset = 24;
constexpr int64_t kMemoryRangeBytes = 16;

int64_t getScratchBytes(Operation *func) {
  auto bytes = func->getAttrOfType<IntegerAttr>(strips::kScratchBytesAttr);
  return bytes ? llvm::alignTo(bytes.getInt(), 64) : 0;
}

/// The state of a program, as values inside its function.
struct ProgramContext {
  Value launch;
  Value ids[3];
  Value nextIds[3]; ///< of the program that runs next on this thread; null if unused
  Value scratch;
};

class ProgramLowering {
public:
  /// `sites` is shared by the functions of a module: a kernel also reports assertions of its
  /// callees.
  ProgramLowering(ModuleOp module, tile::FuncOp func, SmallVectorImpl<Attribute> &sites)
      : module(module), func(func), context(module.getContext()), builder(context),
        loc(func.getLoc()), sites(sites) {}

  LogicalResult run();

private:
  Type convert(Type type) {
    return isa<tile::PointerType>(type) ? IntegerType::get(context, 64) : type;
  }
  Type pointerType() { return LLVM::LLVMPointerType::get(context); }
  Value constant(int64_t value, unsigned width) {
    return arith::ConstantIntOp::create(builder, loc, value, width);
  }
  Value offsetPointer(Value base, int64_t bytes) {
    if (bytes == 0)
      return base;
    // A constant in the op itself has 29 bits.
    LLVM::GEPArg offset =
        llvm::isInt<29>(bytes) ? LLVM::GEPArg(int32_t(bytes)) : constant(bytes, 64);
    return LLVM::GEPOp::create(builder, loc, pointerType(), builder.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{offset});
  }
  Value loadFrom(Type type, Value base, int64_t bytes, unsigned alignment) {
    return LLVM::LoadOp::create(builder, loc, type, offsetPointer(base, bytes), alignment);
  }

  void lowerKernel();
  void configureTiles();
  void zeroCallState(Value programs);
  unsigned countIds();
  SmallVector<Value> buildFollowingIds();
  void lowerFunction();
  Value loadArgument(Value slots, unsigned number, Type type);
  Value lowerLookup(tile::LookupOp lookup);
  LogicalResult lowerBody(Region &body);
  LogicalResult lowerOp(Operation *op);
  Value getScratchView(strips::ScratchOp scratch);
  Value getCachedBytes();
  void lowerAssert(tile::AssertOp check);
  void lowerReport(tile::ReportAccessOp report);
  void buildFault(Location where, NamedAttrList site, Value fails, Value offset);
  void lowerPrint(Operation *op, StringRef prefix, ValueRange indices, ArrayRef<int32_t> widths,
                  ValueRange values, bool hex, ArrayRef<int32_t> isSigned);
  Value call(StringRef name, ValueRange operands, Type result = {});
  Value getString(StringRef text);

  ModuleOp module;
  tile::FuncOp func;
  MLIRContext *context;
  OpBuilder builder;
  Location loc;
  func::FuncOp lowered;
  ProgramContext program;
  unsigned numIds = 0; ///< that the programs of a kernel receive
  SmallVector<Value> gridSizes;
  Value cachedBytes;
  Value slots;                             ///< of a kernel's arguments; null in other functions
  DenseMap<Value, unsigned> argumentSlots; ///< the slot that an argument is loaded from
  DenseMap<std::pair<int64_t, Type>, Value> views;
  SmallVectorImpl<Attribute> &sites;
  DenseMap<Operation *, int64_t> pointeeBytes; ///< of addptr ops
  DenseSet<OpOperand *> printedPointers;       ///< they are integers once they are printed
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value ProgramLowering::loadArgument(Value slots, unsigned number, Type type) {
  Type memory = getMemoryType(type);
  Value value = loadFrom(memory, slots, int64_t(number) * 8, 8);
  return fromMemory(builder, loc, value, type);
}

/// The number of program ids, from axis 0 on, that the code uses.
unsigned ProgramLowering::countIds() {
  unsigned count = 0;
  func.walk([&](Operation *op) {
    if (auto id = dyn_cast<tile::ProgramIdOp>(op))
      count = std::max(count, unsigned(id.getAxis()) + 1);
    else if (auto id = dyn_cast<strips::NextProgramIdOp>(op))
      count = std::max(count, unsigned(id.getAxis()) + 1);
    else if (op->hasTrait<tile::NamesProgram>() || isa<tile::CallOp>(op))
      count = 3;
  });
  return count;
}

/// Counts the ids up, the first one fastest.
SmallVector<Value> ProgramLowering::buildFollowingIds() {
  if (numIds == 0)
    return {};
  Type i32 = builder.getI32Type();
  Value one = constant(1, 32), zero = constant(0, 32);
  Value x = arith::AddIOp::create(builder, loc, program.ids[0], one);
  auto wraps = [&](Value id, Value size) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, id, size);
  };
  auto carry = [&](Value id, Value condition) -> Value {
    Value step = arith::ExtUIOp::create(builder, loc, i32, condition);
    return arith::AddIOp::create(builder, loc, id, step);
  };
  auto reset = [&](Value id, Value condition) -> Value {
    return arith::SelectOp::create(builder, loc, condition, zero, id);
  };
  Value wrapsX = wraps(x, gridSizes[0]);
  x = reset(x, wrapsX);
  if (numIds == 1)
    return {x};
  Value y = carry(program.ids[1], wrapsX);
  Value wrapsY = wraps(y, gridSizes[1]);
  y = reset(y, wrapsY);
  if (numIds == 2)
    return {x, y};
  return {x, y, carry(program.ids[2], wrapsY)};
}

/// Loads the configuration of AMX's tile registers: all of 16 rows of 64 bytes.
void ProgramLowering::configureTiles() {
  constexpr llvm::StringLiteral kName = "strips.tile_configuration";
  constexpr size_t kFirstColumns = 16, kFirstRows = 48;
  if (!module.lookupSymbol(kName)) {
    std::string bytes(64, '\0');
    bytes[0] = 1; // the palette
    for (size_t tile = 0; tile < AMXInstruction::kRegisters; ++tile) {
      bytes[kFirstColumns + 2 * tile] = AMXInstruction::kWords * AMXInstruction::kWordBytes;
      bytes[kFirstRows + tile] = AMXInstruction::kRows;
    }
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(top.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(top, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                           kName, top.getStringAttr(bytes), /*alignment=*/64);
  }
  Value address = LLVM::AddressOfOp::create(builder, loc, pointerType(), kName);
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr("llvm.x86.ldtilecfg"),
                                ValueRange{address});
}

/// Zeroes what programs leave for the next ones of a call, which has so many. A single program
/// leaves nothing, and needs no more than the first line.
void ProgramLowering::zeroCallState(Value programs) {
  auto states = func->getAttrOfType<DenseI64ArrayAttr>(strips::kCallStateAttr);
  if (!states)
    return;
  constexpr int64_t kWordBytes = 8;
  Value hasOthers =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, programs, constant(1, 64));
  for (int64_t i = 0; i + 1 < states.size(); i += 2) {
    Value first = offsetPointer(program.scratch, states[i]);
    int64_t all = states[i + 1] * kWordBytes;
    Value bytes = constant(all, 64), line = constant(std::min(all, HostMachine::kLineBytes), 64);
    bytes = arith::SelectOp::create(builder, loc, hasOthers, bytes, line);
    LLVM::MemsetOp::create(builder, loc, first, constant(0, 8), bytes, /*isVolatile=*/false);
    LLVM::StoreOp::create(builder, loc, programs, first, kWordBytes);
  }
}

/// The function around the programs: arguments, then the loop.
void ProgramLowering::lowerKernel() {
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type(), ptr = pointerType();
  auto type = FunctionType::get(context, {ptr, i64, i64, ptr}, {i32});
  builder.setInsertionPoint(func);
  lowered = func::FuncOp::create(builder, loc, func.getName(), type);
  // The arena belongs to this thread and is reached through this argument alone.
  for (unsigned argument : {0u, 3u})
    lowered.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  lowered.setArgAttr(3, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(64));
  Block *entry = lowered.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  Value launch = entry->getArgument(0), begin = entry->getArgument(1), end = entry->getArgument(2);
  program.launch = launch;
  program.scratch = entry->getArgument(3);

  slots = loadFrom(ptr, launch, 0, 8);
  SmallVector<Value> arguments;
  for (auto [number, argument] : llvm::enumerate(func.getArguments())) {
    arguments.push_back(loadArgument(slots, number, argument.getType()));
    argumentSlots[arguments.back()] = number;
  }
  for (int64_t axis = 0; axis < 3; ++axis)
    gridSizes.push_back(loadFrom(i32, launch, kLaunchGrid + axis * 4, 4));

  // The first program's ids by division; the others count up.
  numIds = countIds();
  SmallVector<Value> inits;
  Value rest = begin;
  for (unsigned axis = 0; axis < numIds; ++axis) {
    Value id = rest;
    if (axis < 2) {
      Value size = arith::ExtUIOp::create(builder, loc, i64, gridSizes[axis]);
      id = arith::RemUIOp::create(builder, loc, rest, size);
      if (axis + 1 < numIds)
        rest = arith::DivUIOp::create(builder, loc, rest, size);
    }
    inits.push_back(arith::TruncIOp::create(builder, loc, i32, id));
  }
  // Once for all programs of this thread, whose functions share the registers.
  bool hasTileRegisters = llvm::any_of(module.getOps<FunctionOpInterface>(), [](Operation *op) {
    return op->hasAttr(strips::kTileRegistersAttr);
  });
  if (hasTileRegisters)
    configureTiles();
  zeroCallState(arith::SubIOp::create(builder, loc, end, begin));
  auto loop = scf::ForOp::create(builder, loc, begin, end, constant(1, 64), inits);
  builder.setInsertionPointToStart(loop.getBody());
  llvm::copy(loop.getRegionIterArgs(), program.ids);

  std::optional<SmallVector<Value>> following;
  bool looksAhead = false;
  func.walk([&](strips::NextProgramIdOp) { looksAhead = true; });
  if (looksAhead) {
    following = buildFollowingIds();
    Value one = constant(1, 64);
    Value number = arith::AddIOp::create(builder, loc, loop.getInductionVar(), one);
    Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, number, end);
    for (unsigned axis = 0; axis < numIds; ++axis)
      program.nextIds[axis] =
          arith::SelectOp::create(builder, loc, isLast, program.ids[axis], (*following)[axis]);
  }

  bool mayFail = false;
  module.walk([&](Operation *op) { mayFail |= isa<tile::AssertOp, tile::ReportAccessOp>(op); });
  mayFail |= !sites.empty();
  if (mayFail) {
    // No program starts after one has failed.
    Value fault = loadFrom(ptr, launch, kLaunchFault, 8);
    Value raised = loadFrom(i32, fault, 0, 4);
    Value go =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, raised, constant(0, 32));
    auto ifOp = scf::IfOp::create(builder, loc, go, /*withElseRegion=*/false);
    builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  }
  Block &body = func.getBody().front();
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  builder.getInsertionBlock()->getOperations().splice(builder.getInsertionPoint(),
                                                      body.getOperations());
  Operation *yield = nullptr;
  lowered.walk([&](tile::ReturnOp op) { yield = op; });
  yield->erase();

  builder.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next = following ? *following : buildFollowingIds();
  if (numIds != 0) // else there is one already
    scf::YieldOp::create(builder, loc, next);

  builder.setInsertionPointToEnd(entry);
  if (hasTileRegisters)
    LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr("llvm.x86.tilerelease"),
                                  ValueRange{});
  Value status = constant(0, 32);
  if (mayFail)
    status = loadFrom(i32, loadFrom(ptr, launch, kLaunchFault, 8), 0, 4);
  func::ReturnOp::create(builder, loc, status);
}

/// A device function takes what its caller knows after its own arguments.
void ProgramLowering::lowerFunction() {
  SmallVector<Type> inputs, results;
  for (Type type : func.getArgumentTypes())
    inputs.push_back(convert(type));
  for (Type type : func.getResultTypes())
    results.push_back(convert(type));
  Type i32 = builder.getI32Type();
  inputs.append({pointerType(), i32, i32, i32, pointerType()});
  builder.setInsertionPoint(func);
  lowered = func::FuncOp::create(builder, loc, func.getName(),
                                 FunctionType::get(context, inputs, results));
  lowered.setPrivate();
  lowered.setNoInline(func.getNoinline());
  lowered.getBody().takeBody(func.getBody());
  Block &entry = lowered.getBody().front();
  program.launch = entry.addArgument(pointerType(), loc);
  for (Value &id : program.ids)
    id = entry.addArgument(i32, loc);
  program.scratch = entry.addArgument(pointerType(), loc);
  builder.setInsertionPointToStart(&entry);
  for (int64_t axis = 0; axis < 3; ++axis)
    gridSizes.push_back(loadFrom(i32, program.launch, kLaunchGrid + axis * 4, 4));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The bytes that the launcher takes the caches to keep; loaded at the top of the function.
Value ProgramLowering::getCachedBytes() {
  if (!cachedBytes) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(gridSizes.back());
    cachedBytes = loadFrom(builder.getI64Type(), program.launch, kLaunchCachedBytes, 8);
  }
  return cachedBytes;
}

/// A memref of the arena, as the descriptor that MLIR lowers memrefs to; made once, at
/// the top of the function.
Value ProgramLowering::getScratchView(strips::ScratchOp scratch) {
  Value &view = views[{scratch.getOffset(), scratch.getType()}];
  if (view)
    return view;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(gridSizes.back());
  auto type = cast<MemRefType>(scratch.getType());
  Type i64 = builder.getI64Type();
  auto sizes = LLVM::LLVMArrayType::get(i64, type.getRank());
  auto descriptorType =
      LLVM::LLVMStructType::getLiteral(context, {pointerType(), pointerType(), i64, sizes, sizes});
  Value pointer = offsetPointer(program.scratch, scratch.getOffset());
  Value descriptor = LLVM::PoisonOp::create(builder, loc, descriptorType);
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    descriptor = LLVM::InsertValueOp::create(builder, loc, descriptor, value, position);
  };
  insert(pointer, {0});
  insert(pointer, {1});
  insert(constant(0, 64), {2});
  int64_t stride = 1;
  for (int64_t dim = type.getRank(); dim-- > 0; stride *= type.getDimSize(dim)) {
    insert(constant(type.getDimSize(dim), 64), {3, dim});
    insert(constant(stride, 64), {4, dim});
  }
  view = UnrealizedConversionCastOp::create(builder, loc, type, descriptor).getResult(0);
  return view;
}

/// Buffers in the arena are aligned as their elements are. Without this attribute, MLIR queries
/// LLVM for each access, in a new context, which takes a third of the time of lowering vectors.
static void alignAccesses(Value buffer) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  uint64_t bytes = element.getIntOrFloatBitWidth() / 8;
  for (Operation *user : buffer.getUsers())
    TypeSwitch<Operation *>(user)
        .Case<vector::LoadOp, vector::StoreOp, vector::GatherOp, vector::ScatterOp>(
            [&](auto access) { access.setAlignment(bytes); })
        .Case([](memref::ReinterpretCastOp part) { alignAccesses(part); });
}

/// If `fails` is true, ends the launch with the fault that `site` describes.
void ProgramLowering::buildFault(Location place, NamedAttrList site, Value fails, Value offset) {
  FileLineColLoc where;
  place->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      where = file;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  site.append("file", where ? StringAttr::get(context, where.getFilename().strref())
                            : StringAttr::get(context, ""));
  site.append("line", builder.getI64IntegerAttr(where ? where.getLine() : 0));
  site.append("column", builder.getI64IntegerAttr(where ? where.getColumn() : 0));
  Attribute entry = site.getDictionary(context);
  auto known = llvm::find(sites, entry);
  int64_t number = known - sites.begin();
  if (known == sites.end())
    sites.push_back(entry);

  auto ifOp = scf::IfOp::create(builder, loc, fails, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  Value fault = loadFrom(pointerType(), program.launch, kLaunchFault, 8);
  // The first to fail writes the record.
  Value exchange =
      LLVM::AtomicCmpXchgOp::create(builder, loc, fault, constant(0, 32), constant(1, 32),
                                    LLVM::AtomicOrdering::acq_rel, LLVM::AtomicOrdering::acquire);
  Value isFirst = LLVM::ExtractValueOp::create(builder, loc, exchange, ArrayRef<int64_t>{1});
  auto record = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  builder.setInsertionPoint(record.thenBlock()->getTerminator());
  LLVM::StoreOp::create(builder, loc, constant(number, 32), offsetPointer(fault, kFaultSite), 4);
  for (int64_t axis = 0; axis < 3; ++axis)
    LLVM::StoreOp::create(builder, loc, program.ids[axis],
                          offsetPointer(fault, kFaultProgram + axis * 4), 4);
  if (offset)
    LLVM::StoreOp::create(builder, loc, offset, offsetPointer(fault, kFaultOffset), 8);
}

void ProgramLowering::lowerAssert(tile::AssertOp check) {
  NamedAttrList site;
  site.append("message", check.getMessageAttr());
  Value fails = arith::XOrIOp::create(builder, loc, check.getCondition(), constant(1, 1));
  buildFault(check.getLoc(), site, fails, /*offset=*/{});
}

void ProgramLowering::lowerReport(tile::ReportAccessOp report) {
  NamedAttrList site;
  site.append("access", report.getAccessAttr());
  site.append("argument", builder.getI64IntegerAttr(report.getArgument()));
  site.append("bytes", builder.getI64IntegerAttr(report.getBytes()));
  site.append("wraps", builder.getBoolAttr(report.getWraps()));
  buildFault(report.getLoc(), site, report.getFails(), report.getOffset());
}

/// The result, where there is one.
Value ProgramLowering::call(StringRef name, ValueRange operands, Type result) {
  auto callee = module.lookupSymbol<func::FuncOp>(name);
  if (!callee) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    auto type =
        FunctionType::get(context, operands.getTypes(), result ? TypeRange(result) : TypeRange());
    callee = func::FuncOp::create(top, loc, name, type);
    callee.setPrivate();
  }
  auto made = func::CallOp::create(builder, loc, callee, operands);
  return result ? made.getResult(0) : Value();
}

/// A pointer to a zero-terminated string.
Value ProgramLowering::getString(StringRef text) {
  std::string bytes = text.str() + '\0';
  std::string name = "strips.string." + std::to_string(llvm::hash_value(text));
  if (!module.lookupSymbol(name)) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(top.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(top, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                           name, top.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(builder, loc, pointerType(), name);
}

void ProgramLowering::lowerPrint(Operation *op, StringRef prefix, ValueRange indices,
                                 ArrayRef<int32_t> widths, ValueRange values, bool hex,
                                 ArrayRef<int32_t> isSigned) {
  Value printer = loadFrom(pointerType(), program.launch, kLaunchPrinter, 8);
  call("__tessera_rt_print_begin",
       {printer, program.ids[0], program.ids[1], program.ids[2], getString(prefix)});
  for (auto [index, width] : llvm::zip_equal(indices, widths)) {
    Value narrow = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
    call("__tessera_rt_print_index", {printer, narrow, constant(width, 32)});
  }
  Value hexValue = constant(hex, 32);
  for (auto [number, value] : llvm::enumerate(values)) {
    Type type = value.getType();
    if (isa<FloatType>(type)) {
      Value wide = value;
      if (!type.isF64())
        wide = arith::ExtFOp::create(builder, loc, builder.getF64Type(), value);
      call("__tessera_rt_print_float", {printer, wide, hexValue});
      continue;
    }
    if (isa<LLVM::LLVMPointerType>(type)) {
      call("__tessera_rt_print_pointer", {printer, value});
      continue;
    }
    bool readSigned = isSigned[number] != 0;
    unsigned width = type.getIntOrFloatBitWidth();
    Value wide = value;
    if (width < 64) {
      if (readSigned)
        wide = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), value);
      else
        wide = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
    }
    call("__tessera_rt_print_int",
         {printer, wide, constant(width, 32), constant(readSigned, 32), hexValue});
  }
  call("__tessera_rt_print_end", {printer});
}

/// Consecutive arguments are a table in memory already. Other items are selected by halves.
Value ProgramLowering::lowerLookup(tile::LookupOp lookup) {
  SmallVector<Value> items(lookup.getItems());
  Value index = lookup.getIndex();
  unsigned bits = index.getType().getIntOrFloatBitWidth();
  unsigned first = argumentSlots.lookup_or(items.front(), 0);
  bool isTable = llvm::all_of(llvm::enumerate(items), [&](auto item) {
    auto slot = argumentSlots.find(item.value());
    return slot != argumentSlots.end() && slot->second == first + item.index();
  });
  if (isTable) {
    index = arith::MinUIOp::create(builder, loc, index, constant(int64_t(items.size()) - 1, bits));
    if (bits < 64)
      index = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), index);
    Value bytes = arith::MulIOp::create(builder, loc, index, constant(8, 64));
    Value table = LLVM::GEPOp::create(builder, loc, pointerType(), builder.getI8Type(), slots,
                                      ArrayRef<LLVM::GEPArg>{bytes});
    return loadArgument(table, first, lookup.getType());
  }
  auto choose = [&](auto &self, size_t begin, size_t end) -> Value {
    if (end - begin == 1)
      return items[begin];
    size_t middle = begin + (end - begin) / 2;
    Value isBefore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index,
                                           constant(int64_t(middle), bits));
    Value front = self(self, begin, middle), back = self(self, middle, end);
    return arith::SelectOp::create(builder, loc, isBefore, front, back);
  };
  return choose(choose, 0, items.size());
}

LogicalResult ProgramLowering::lowerOp(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  auto replace = [&](Value value) {
    op->replaceAllUsesWith(ValueRange(value));
    op->erase();
    return success();
  };
  auto drop = [&] {
    op->erase();
    return success();
  };
  if (auto id = dyn_cast<tile::ProgramIdOp>(op))
    return replace(program.ids[id.getAxis()]);
  if (auto id = dyn_cast<strips::NextProgramIdOp>(op)) {
    if (Value next = program.nextIds[id.getAxis()])
      return replace(next);
    return op->emitError("is outside a kernel");
  }
  if (auto count = dyn_cast<tile::NumProgramsOp>(op))
    return replace(gridSizes[count.getAxis()]);
  if (isa<tile::ClockOp>(op))
    return replace(call("__tessera_rt_clock_ns", {}, builder.getI64Type()));
  if (auto scratch = dyn_cast<strips::ScratchOp>(op)) {
    alignAccesses(scratch);
    return replace(getScratchView(scratch));
  }
  if (isa<tile::PtrToIntOp, tile::IntToPtrOp, tile::HintOp>(op))
    return replace(op->getOperand(0));
  if (auto lookup = dyn_cast<tile::LookupOp>(op))
    return replace(lowerLookup(lookup));
  if (auto exceeds = dyn_cast<strips::ExceedsCachesOp>(op)) {
    Value bytes = exceeds.getBytes();
    for (Value size : gridSizes) {
      Value wide = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), size);
      bytes = arith::MulIOp::create(builder, loc, bytes, wide);
    }
    return replace(
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, bytes, getCachedBytes()));
  }
  if (auto cast = dyn_cast<tile::BitcastOp>(op)) {
    if (cast.getSource().getType() == cast.getType())
      return replace(cast.getSource());
    return replace(arith::BitcastOp::create(builder, loc, cast.getType(), cast.getSource()));
  }
  if (auto add = dyn_cast<tile::AddPtrOp>(op)) {
    Value offset = add.getOffset();
    if (!offset.getType().isInteger(64))
      offset = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), offset);
    Value bytes = constant(pointeeBytes.lookup(op), 64);
    offset = arith::MulIOp::create(builder, loc, offset, bytes);
    return replace(arith::AddIOp::create(builder, loc, add.getPtr(), offset));
  }
  if (isa<tile::AccessOpInterface>(op)) {
    Value value = buildScalarAccess(builder, op, op->getOperands());
    return value ? replace(value) : drop();
  }
  if (auto assume = dyn_cast<tile::AssumeOp>(op)) {
    LLVM::AssumeOp::create(builder, loc, assume.getCondition());
    return drop();
  }
  if (isa<tile::BarrierOp>(op))
    return drop();
  if (auto check = dyn_cast<tile::AssertOp>(op)) {
    lowerAssert(check);
    return drop();
  }
  if (auto report = dyn_cast<tile::ReportAccessOp>(op)) {
    lowerReport(report);
    return drop();
  }
  if (auto memory = dyn_cast<tile::ArgumentMemoryOp>(op)) {
    Value ranges = loadFrom(pointerType(), program.launch, kLaunchMemory, 8);
    int64_t at = memory.getArgument() * kMemoryRangeBytes;
    Type i64 = builder.getI64Type();
    memory.getBegin().replaceAllUsesWith(loadFrom(i64, ranges, at, 8));
    memory.getEnd().replaceAllUsesWith(loadFrom(i64, ranges, at + 8, 8));
    return drop();
  }
  if (auto print = dyn_cast<strips::PrintOp>(op)) {
    lowerPrint(op, print.getPrefix(), print.getIndices(), print.getWidths(), print.getArgs(),
               print.getHex(), print.getIsSigned());
    return drop();
  }
  if (auto print = dyn_cast<tile::PrintOp>(op)) {
    SmallVector<Value> values;
    for (OpOperand &operand : print.getArgsMutable())
      values.push_back(
          printedPointers.contains(&operand)
              ? Value(LLVM::IntToPtrOp::create(builder, loc, pointerType(), operand.get()))
              : operand.get());
    lowerPrint(op, print.getPrefix(), {}, {}, values, print.getHex(), print.getIsSigned());
    return drop();
  }
  if (auto callOp = dyn_cast<tile::CallOp>(op)) {
    SmallVector<Value> operands(callOp.getOperands());
    operands.push_back(program.launch);
    operands.append({program.ids[0], program.ids[1], program.ids[2]});
    operands.push_back(offsetPointer(program.scratch, getScratchBytes(lowered)));
    auto lowCall =
        func::CallOp::create(builder, loc, callOp.getCallee(), callOp.getResultTypes(), operands);
    op->replaceAllUsesWith(lowCall.getResults());
    return drop();
  }
  if (auto ret = dyn_cast<tile::ReturnOp>(op)) {
    func::ReturnOp::create(builder, loc, ret.getOperands());
    return drop();
  }
  return success();
}

LogicalResult ProgramLowering::lowerBody(Region &body) {
  SmallVector<Operation *> ops;
  // Pointers become integers in place, block arguments too.
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto add = dyn_cast<tile::AddPtrOp>(op))
      pointeeBytes[op] = cast<tile::PointerType>(add.getType()).getPointeeBytes();
    ops.push_back(op);
  });
  for (Operation *op : ops) {
    for (Value result : op->getResults())
      result.setType(convert(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          argument.setType(convert(argument.getType()));
  }
  for (Value argument : body.getArguments())
    argument.setType(convert(argument.getType()));
  for (Operation *op : ops)
    if (failed(lowerOp(op)))
      return failure();
  return success();
}

LogicalResult ProgramLowering::run() {
  DictionaryAttr attributes = func->getDiscardableAttrDictionary();
  func.walk([&](tile::PrintOp print) {
    for (OpOperand &operand : print.getArgsMutable())
      if (isa<tile::PointerType>(operand.get().getType()))
        printedPointers.insert(&operand);
  });
  if (func.isKernel())
    lowerKernel();
  else
    lowerFunction();
  for (StringRef name : {strips::kScratchBytesAttr, strips::kTileRegistersAttr})
    if (Attribute attribute = attributes.get(name))
      lowered->setAttr(name, attribute);
  if (failed(lowerBody(lowered.getBody())))
    return failure();
  func.erase();
  return success();
}

/// An error where there are tiles: the passes that make loops of them have not run.
LogicalResult verifyWithoutTiles(tile::FuncOp func) {
  auto isTile = [](Type type) { return isa<TensorType>(type); };
  if (llvm::any_of(func.getArgumentTypes(), isTile) || llvm::any_of(func.getResultTypes(), isTile))
    return func.emitError("takes or returns tiles, which have to be lowered before programs");
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    if (isa<strips::GroupOp>(op) || llvm::any_of(op->getOperandTypes(), isTile) ||
        llvm::any_of(op->getResultTypes(), isTile))
      return op->emitError("'") << op->getName() << "' has to be lowered before programs";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The scratch memory of a function and its callees, whose memory is behind its own; nothing for
/// recursive functions.
std::optional<int64_t> getTotalScratchBytes(tile::FuncOp func, SmallVectorImpl<Operation *> &path) {
  if (llvm::is_contained(path, func))
    return std::nullopt;
  path.push_back(func);
  int64_t most = 0;
  WalkResult result = func.walk([&](tile::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<tile::FuncOp>(func, call.getCalleeAttr());
    std::optional<int64_t> bytes = getTotalScratchBytes(callee, path);
    most = std::max(most, bytes.value_or(0));
    return bytes ? WalkResult::advance() : WalkResult::interrupt();
  });
  path.pop_back();
  if (result.wasInterrupted())
    return std::nullopt;
  return getScratchBytes(func) + most;
}

struct StripsLowerPrograms : impl::StripsLowerProgramsBase<StripsLowerPrograms> {
  void runOnOperation() override {
    SmallVector<tile::FuncOp> functions(getOperation().getOps<tile::FuncOp>());
    llvm::StringMap<int64_t> scratchBytes;
    for (tile::FuncOp func : functions) {
      if (failed(verifyWithoutTiles(func)))
        return signalPassFailure();
      SmallVector<Operation *> path;
      std::optional<int64_t> bytes = getTotalScratchBytes(func, path);
      if (!bytes) {
        emitUserError(func, "E030") << "a function that calls itself is not supported on the CPU";
        return signalPassFailure();
      }
      scratchBytes[func.getName()] = *bytes;
    }
    SmallVector<Attribute> sites;
    for (tile::FuncOp func : functions)
      if (failed(ProgramLowering(getOperation(), func, sites).run()))
        return signalPassFailure();
    Builder builder(&getContext());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (!func.isPublic())
        continue;
      if (int64_t bytes = scratchBytes.lookup(func.getName()))
        func->setAttr(strips::kScratchBytesAttr, builder.getI64IntegerAttr(bytes));
      if (!sites.empty())
        func->setAttr(strips::kSitesAttr, builder.getArrayAttr(sites));
    }
  }
};

} // namespace
} // namespace tessera
