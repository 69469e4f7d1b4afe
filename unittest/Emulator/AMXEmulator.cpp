// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AMXEmulator.h"

#include <atomic>
#include <cmath>
#include <cpuid.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

namespace {

constexpr int kTiles = 8, kMaxRows = 16, kRowBytes = 64;

/// The operand of LDTILECFG.
struct Configuration {
  uint8_t palette, startRow, reserved[14];
  uint16_t columnBytes[kTiles];
  uint8_t reservedColumns[16];
  uint8_t rows[kTiles];
  uint8_t reservedRows[8];
};
static_assert(sizeof(Configuration) == 64);

struct Tile {
  alignas(64) uint8_t bytes[kMaxRows][kRowBytes];
};

/// The AMX registers of a thread.
struct State {
  Configuration configuration;
  Tile tiles[kTiles];
};
thread_local State state;
std::atomic<long> numDots = 0;

/// Ends the process. Only calls what a signal handler may call.
[[noreturn]] void fail(const char *message) {
  constexpr char kName[] = "AMX emulator: ";
  (void)!write(STDERR_FILENO, kName, sizeof(kName) - 1);
  (void)!write(STDERR_FILENO, message, strlen(message));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(132);
}

/// An instruction with a VEX prefix of three bytes and an opcode of map 0F38.
struct Instruction {
  enum Prefix : uint8_t { kNone, k66, kF3, kF2 };
  Prefix prefix;
  uint8_t opcode;
  bool isMemory;
  uint8_t reg, rm, vvvv;
  uint8_t *address; ///< of a memory operand, without the index
  int64_t stride;   ///< of rows: the index, scaled
  int length;       ///< in bytes
};

/// The general register that an instruction encodes as `number`.
int64_t getRegister(const ucontext_t *context, int number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  return context->uc_mcontext.gregs[kOrder[number]];
}

/// False if it is no such instruction.
bool decode(const ucontext_t *context, Instruction &result) {
  const auto *code = reinterpret_cast<const uint8_t *>(context->uc_mcontext.gregs[REG_RIP]);
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0)
    return false;
  bool extendsReg = !(code[1] & 0x80), extendsIndex = !(code[1] & 0x40),
       extendsBase = !(code[1] & 0x20);
  result.prefix = Instruction::Prefix(code[2] & 3);
  result.vvvv = ~(code[2] >> 3) & 15;
  result.opcode = code[3];
  uint8_t modrm = code[4], mode = modrm >> 6;
  result.reg = (modrm >> 3 & 7) | (extendsReg ? 8 : 0);
  result.rm = modrm & 7;
  result.isMemory = mode != 3;
  const uint8_t *next = code + 5;
  if (result.isMemory) {
    int64_t base = 0;
    result.stride = 0;
    bool hasBase = true;
    if (result.rm == 4) {
      uint8_t sib = *next++;
      int index = (sib >> 3 & 7) | (extendsIndex ? 8 : 0);
      if (index != 4)
        result.stride = getRegister(context, index) << (sib >> 6);
      hasBase = (sib & 7) != 5 || mode != 0;
      if (hasBase)
        base = getRegister(context, (sib & 7) | (extendsBase ? 8 : 0));
    } else if (result.rm == 5 && mode == 0) {
      hasBase = false; // relative to the next instruction
    } else {
      base = getRegister(context, result.rm | (extendsBase ? 8 : 0));
    }
    int64_t offset = 0;
    if (mode == 1) {
      offset = int8_t(*next++);
    } else if (mode == 2 || !hasBase) {
      int32_t wide;
      memcpy(&wide, next, 4);
      offset = wide;
      next += 4;
    }
    if (!hasBase && result.rm == 5)
      base = reinterpret_cast<int64_t>(next);
    result.address = reinterpret_cast<uint8_t *>(base + offset);
  }
  result.length = int(next - code);
  return true;
}

void configure(const Configuration &wanted) {
  if (wanted.palette > 1)
    fail("LDTILECFG of an unknown palette");
  if (wanted.palette == 1)
    for (int tile = 0; tile < kTiles; ++tile)
      if (wanted.rows[tile] > kMaxRows || wanted.columnBytes[tile] > kRowBytes)
        fail("LDTILECFG of a tile that is too large");
  state = State();
  if (wanted.palette == 1)
    state.configuration = wanted;
}

/// Where Linux saves the configuration of tiles for a handler, from the beginning of a thread's
/// state on. 0 if it has none to save.
size_t findSavedConfiguration() {
  unsigned eax, offset, ecx, edx;
  constexpr unsigned kXSave = 1u << 27, kTileConfiguration = 17;
  if (!__get_cpuid(1, &eax, &offset, &ecx, &edx) || !(ecx & kXSave))
    return 0;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  if (!(eax >> kTileConfiguration & 1))
    return 0;
  __get_cpuid_count(13, kTileConfiguration, &eax, &offset, &ecx, &edx);
  return offset;
}

/// Takes over the configuration of a CPU that has AMX and raises SIGILL for want of permission.
/// Such a CPU executes LDTILECFG and TILERELEASE itself, since they need none. The handler finds
/// what they did in the state that Linux saved for it.
void readConfiguration(const ucontext_t *context) {
  static const size_t offset = findSavedConfiguration();
  if (offset == 0)
    return;
  constexpr size_t kLegacyBytes = 512; // behind which a mask says what is saved
  constexpr unsigned kTileConfiguration = 17;
  const auto *saved = reinterpret_cast<const uint8_t *>(context->uc_mcontext.fpregs);
  uint64_t components;
  memcpy(&components, saved + kLegacyBytes, sizeof(components));
  Configuration real = {};
  if (components >> kTileConfiguration & 1)
    memcpy(&real, saved + offset, sizeof(real));
  if (memcmp(&real, &state.configuration, sizeof(real)) != 0)
    configure(real);
}

Tile &getTile(int number) {
  if (state.configuration.palette != 1)
    fail("a tile is used before LDTILECFG, or after TILERELEASE");
  if (number >= kTiles || state.configuration.rows[number] == 0)
    fail("a tile is used that is not configured");
  return state.tiles[number];
}
int getRows(int number) { return state.configuration.rows[number]; }
int getColumnBytes(int number) { return state.configuration.columnBytes[number]; }

/// Flushes a denormal number to a zero of its sign.
float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

float readFloat(const uint8_t *bytes) {
  float value;
  memcpy(&value, bytes, 4);
  return flush(value);
}

float widenBF16(const uint8_t *bytes) {
  uint32_t bits = uint32_t(bytes[0]) << 16 | uint32_t(bytes[1]) << 24;
  float value;
  memcpy(&value, &bits, 4);
  return flush(value);
}

/// Even and odd elements of k are summed apart, and the two sums are added at the end.
void dotBF16(const uint8_t *row, const Tile &b, int words, int column, uint8_t *target) {
  float even = 0, odd = 0;
  for (int k = 0; k < words; ++k) {
    const uint8_t *x = row + 4 * k, *y = b.bytes[k] + 4 * column;
    even = flush(std::fma(widenBF16(x), widenBF16(y), even));
    odd = flush(std::fma(widenBF16(x + 2), widenBF16(y + 2), odd));
  }
  float sum = flush(readFloat(target) + flush(even + odd));
  memcpy(target, &sum, 4);
}

void dotBytes(const uint8_t *row, const Tile &b, int words, int column, uint8_t *target,
              bool isASigned, bool isBSigned) {
  uint32_t sum;
  memcpy(&sum, target, 4);
  for (int k = 0; k < 4 * words; ++k) {
    uint8_t x = row[k], y = b.bytes[k / 4][4 * column + k % 4];
    sum += uint32_t((isASigned ? int8_t(x) : int(x)) * (isBSigned ? int8_t(y) : int(y)));
  }
  memcpy(target, &sum, 4);
}

void executeDot(const Instruction &what) {
  int accumulator = what.reg, a = what.rm, b = what.vvvv;
  Tile &target = getTile(accumulator);
  const Tile &left = getTile(a), &right = getTile(b);
  if (accumulator == a || accumulator == b || a == b)
    fail("a dot whose tiles are not three different ones");
  int words = getColumnBytes(a) / 4;
  if (getRows(accumulator) != getRows(a) || getColumnBytes(accumulator) != getColumnBytes(b) ||
      getRows(b) != words)
    fail("a dot of tiles whose shapes do not fit");
  for (int row = 0; row < getRows(accumulator); ++row)
    for (int column = 0; column < getColumnBytes(accumulator) / 4; ++column) {
      uint8_t *place = target.bytes[row] + 4 * column;
      if (what.opcode == 0x5C)
        dotBF16(left.bytes[row], right, words, column, place);
      else
        dotBytes(left.bytes[row], right, words, column, place,
                 what.prefix == Instruction::kF2 || what.prefix == Instruction::kF3,
                 what.prefix == Instruction::kF2 || what.prefix == Instruction::k66);
    }
  ++numDots;
}

/// False if it is no instruction of AMX.
bool execute(const Instruction &what) {
  switch (what.opcode) {
  case 0x49:
    if (what.isMemory && what.prefix == Instruction::kNone)
      configure(*reinterpret_cast<const Configuration *>(what.address));
    else if (what.isMemory && what.prefix == Instruction::k66)
      memcpy(what.address, &state.configuration, sizeof(Configuration));
    else if (!what.isMemory && what.prefix == Instruction::kNone)
      configure(Configuration());
    else if (!what.isMemory && what.prefix == Instruction::kF2)
      getTile(what.reg) = Tile();
    else
      return false;
    return true;
  case 0x4B: {
    if (!what.isMemory || what.prefix == Instruction::kNone)
      return false;
    Tile &tile = getTile(what.reg);
    bool isStore = what.prefix == Instruction::kF3;
    if (!isStore)
      tile = Tile();
    for (int row = 0; row < getRows(what.reg); ++row) {
      uint8_t *place = what.address + row * what.stride;
      if (isStore)
        memcpy(place, tile.bytes[row], getColumnBytes(what.reg));
      else
        memcpy(tile.bytes[row], place, getColumnBytes(what.reg));
    }
    return true;
  }
  case 0x5C:
    if (what.isMemory || what.prefix != Instruction::kF3)
      return false;
    executeDot(what);
    return true;
  case 0x5E:
    if (what.isMemory)
      return false;
    executeDot(what);
    return true;
  default:
    return false;
  }
}

struct sigaction previous;

void handle(int signal, siginfo_t *information, void *opaque) {
  auto *context = static_cast<ucontext_t *>(opaque);
  Instruction what;
  bool isKnown = decode(context, what);
  if (isKnown)
    readConfiguration(context);
  if (isKnown && execute(what)) {
    context->uc_mcontext.gregs[REG_RIP] += what.length;
    return;
  }
  if (previous.sa_flags & SA_SIGINFO)
    return previous.sa_sigaction(signal, information, opaque);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  fail("an instruction that neither this CPU nor the emulator knows");
}

} // namespace

void tessera_install_amx_emulator() {
  static const bool isInstalled = [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    // An emulated instruction may stand in another handler, or in this one's caller.
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGILL, &action, &previous) == 0;
  }();
  if (!isInstalled)
    fail("no handler for SIGILL could be installed");
}

const char *tessera_emulated_cpu_features() { return "+amx-tile,+amx-bf16,+amx-int8"; }

long tessera_emulated_tile_dots() { return numDots; }
