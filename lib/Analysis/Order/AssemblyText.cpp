// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AssemblyText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <string>

using namespace tessera;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

struct Token {
  enum Kind {
    Operand,  ///< $0, ${1:h}
    Special,  ///< %tid.x: a register that the text does not have to declare
    Name,     ///< add, p
    Suffix,   ///< .f32, .L1::evict_last
    Number,   ///< 1, 0x1f, 0f3f800000, 1.5
    Character ///< ; , { } and the like
  };
  Kind kind;
  StringRef text;

  bool is(char c) const { return kind == Character && text.front() == c; }
};

} // namespace

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// The text without comments; nothing if one does not end.
static std::optional<std::string> removeComments(StringRef text) {
  std::string rest;
  while (!text.empty()) {
    size_t at = text.find('/');
    rest += text.take_front(at);
    text = text.drop_front(std::min(at, text.size()));
    if (text.empty())
      break;
    bool isLine = text.starts_with("//");
    if (!isLine && !text.starts_with("/*")) {
      rest += text.front();
      text = text.drop_front();
      continue;
    }
    size_t end = isLine ? text.find('\n') : text.find("*/", 2);
    if (end == StringRef::npos)
      return isLine ? std::optional(rest) : std::nullopt;
    rest += ' ';
    text = text.drop_front(end + (isLine ? 1 : 2));
  }
  return rest;
}

/// The length of the operand that a text begins with, 0 if it is another use of `$`.
static size_t getOperandLength(StringRef text) {
  bool isBraced = text.starts_with("${");
  StringRef number = text.drop_front(isBraced ? 2 : 1);
  size_t digits = number.take_while(llvm::isDigit).size();
  if (digits == 0 || !isBraced)
    return digits == 0 ? 0 : 1 + digits;
  StringRef rest = number.drop_front(digits);
  if (rest.size() > 1 && rest.front() == ':' && llvm::isAlpha(rest[1]))
    rest = rest.drop_front(2);
  return rest.starts_with("}") ? text.size() - rest.size() + 1 : 0;
}

/// Nothing for a text with anything else in it.
static std::optional<SmallVector<Token>> tokenize(StringRef text) {
  SmallVector<Token> tokens;
  auto add = [&](Token::Kind kind, size_t length) {
    tokens.push_back({kind, text.take_front(length)});
    text = text.drop_front(length);
  };
  while (!text.empty()) {
    char c = text.front();
    StringRef rest = text.drop_front();
    if (llvm::isSpace(c)) {
      text = rest;
    } else if (c == '$') {
      size_t length = getOperandLength(text);
      if (length == 0)
        return std::nullopt;
      add(Token::Operand, length);
    } else if (c == '%') {
      add(Token::Special,
          1 + rest.take_while([](char c) { return isNameChar(c) || c == '.'; }).size());
    } else if (c == '.') {
      add(Token::Suffix,
          1 + rest.take_while([](char c) { return isNameChar(c) || c == ':'; }).size());
    } else if (llvm::isDigit(c)) {
      add(Token::Number,
          1 + rest.take_while([](char c) { return isNameChar(c) || c == '.'; }).size());
    } else if (isNameChar(c)) {
      add(Token::Name, 1 + rest.take_while(isNameChar).size());
    } else if (StringRef(";,{}[]()<>@!|:+-*~&^=").contains(c)) {
      add(Token::Character, 1);
    } else {
      return std::nullopt;
    }
  }
  return tokens;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// The view of an instruction whose operands are harmless.
static AssemblyView readInstruction(StringRef name, llvm::ArrayRef<Token> suffixes) {
  constexpr AssemblyView kHarmless{false, false}, kSees{true, false}, kUnknown{true, true};
  // Plain loads from global memory, which only the effects of the op say something of.
  if (name == "ld" || name == "ldu") {
    auto isPlain = [](const Token &suffix) {
      StringRef text = suffix.text;
      return llvm::StringSwitch<bool>(text)
                 .Cases({".global", ".nc", ".weak", ".ca", ".cg", ".cs", ".lu"}, true)
                 .Cases({".v2", ".v4", ".v8"}, true)
                 .Cases({".b8", ".b16", ".b32", ".b64", ".b128", ".f32", ".f64"}, true)
                 .Cases({".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64"}, true)
                 .Default(false) ||
             text.starts_with(".L1::") || text.starts_with(".L2::");
    };
    bool isGlobal =
        llvm::any_of(suffixes, [](const Token &suffix) { return suffix.text == ".global"; });
    return isGlobal && llvm::all_of(suffixes, isPlain) ? kHarmless : kSees;
  }
  return llvm::StringSwitch<AssemblyView>(name)
      // They compute their results of their operands.
      .Cases({"abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev"}, kHarmless)
      .Cases({"clz", "cnot", "copysign", "cos", "cvt", "cvta", "div", "dp2a", "dp4a"}, kHarmless)
      .Cases({"ex2", "fma", "fns", "lg2", "lop3", "mad", "mad24", "madc", "max", "min"}, kHarmless)
      .Cases({"mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem"}, kHarmless)
      .Cases({"rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin"}, kHarmless)
      .Cases({"slct", "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor"}, kHarmless)
      .Cases({"vabsdiff", "vadd", "vmad", "vmax", "vmin", "vset", "vshl", "vshr"}, kHarmless)
      .Cases({"vsub", "vabsdiff2", "vadd2", "vavrg2", "vmax2", "vmin2", "vset2"}, kHarmless)
      .Cases({"vsub2", "vabsdiff4", "vadd4", "vavrg4", "vmax4", "vmin4", "vset4"}, kHarmless)
      .Cases({"vsub4", "bra"}, kHarmless)
      // To order grids is the same for any number of blocks.
      .Cases({"createpolicy", "griddepcontrol", "prefetch", "prefetchu"}, kHarmless)
      // Their number of executions is observable, and so are the threads.
      .Cases({"atom", "red", "st", "fence", "membar", "nanosleep", "trap"}, kSees)
      .Cases({"activemask", "match", "redux", "shfl", "vote"}, kSees)
      .Default(kUnknown);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

namespace {

/// Goes through the statements of a text.
class AssemblyReader {
public:
  explicit AssemblyReader(llvm::ArrayRef<Token> tokens) : tokens(tokens) {}

  AssemblyView read();

private:
  bool isName(size_t at) const { return at < tokens.size() && tokens[at].kind == Token::Name; }
  bool is(size_t at, char c) const { return at < tokens.size() && tokens[at].is(c); }
  /// The end of the statement that begins here.
  size_t getEnd(size_t at) const {
    while (at < tokens.size() && !tokens[at].is(';'))
      ++at;
    return at;
  }
  void declareAll();
  bool declare(size_t begin, size_t end);
  void readStatement(size_t begin, size_t end);
  void readOperands(size_t begin, size_t end);
  bool isDeclared(StringRef name) const;
  void assume() { view = {true, true}; }

  llvm::ArrayRef<Token> tokens;
  /// Registers and labels, and registers that are numbered.
  llvm::StringSet<> names, prefixes;
  AssemblyView view{false, false};
};

} // namespace

/// Registers of `.reg .b32 x, y<4>`.
bool AssemblyReader::declare(size_t begin, size_t end) {
  if (tokens[begin].text != ".reg")
    return false;
  for (++begin; begin < end && tokens[begin].kind == Token::Suffix;)
    ++begin;
  while (begin < end) {
    if (!isName(begin))
      return false;
    StringRef name = tokens[begin++].text;
    if (is(begin, '<')) {
      if (begin + 2 >= end || tokens[begin + 1].kind != Token::Number || !is(begin + 2, '>'))
        return false;
      prefixes.insert(name);
      begin += 3;
    } else {
      names.insert(name);
    }
    if (begin < end && !is(begin++, ','))
      return false;
  }
  return true;
}

/// Labels may be named before they come.
void AssemblyReader::declareAll() {
  for (size_t at = 0; at < tokens.size(); ++at)
    if (tokens[at].text == ".reg") {
      size_t end = getEnd(at);
      if (!declare(at, end))
        assume();
      at = end;
    } else if (isName(at) && is(at + 1, ':')) {
      names.insert(tokens[at].text);
    }
}

bool AssemblyReader::isDeclared(StringRef name) const {
  return name == "_" || names.contains(name) || prefixes.contains(name.rtrim("0123456789"));
}

/// Names that are not declared may be those of anything.
void AssemblyReader::readOperands(size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at) {
    const Token &token = tokens[at];
    // A component of a vector.
    bool isComponent = token.kind == Token::Suffix && at > begin && isName(at - 1);
    bool isHarmless = token.kind == Token::Operand || token.kind == Token::Number || isComponent ||
                      (token.kind == Token::Name && isDeclared(token.text)) ||
                      (token.kind == Token::Character && !token.is('@') && !token.is(':'));
    view.maySeeMachine |= !isHarmless;
  }
}

void AssemblyReader::readStatement(size_t begin, size_t end) {
  if (is(begin, '@')) {
    begin += is(begin + 1, '!') ? 2 : 1;
    if (begin >= end)
      return assume();
    readOperands(begin, begin + 1);
    ++begin;
  }
  if (begin >= end || !isName(begin))
    return assume();
  StringRef name = tokens[begin++].text;
  size_t operands = begin;
  while (operands < end && tokens[operands].kind == Token::Suffix)
    ++operands;
  AssemblyView own = readInstruction(name, tokens.slice(begin, operands - begin));
  view.maySeeMachine |= own.maySeeMachine;
  view.mayWaitForThreads |= own.mayWaitForThreads;
  readOperands(operands, end);
}

AssemblyView AssemblyReader::read() {
  declareAll();
  for (size_t at = 0; at < tokens.size();) {
    if (is(at, ';') || is(at, '{') || is(at, '}')) {
      ++at;
    } else if (isName(at) && is(at + 1, ':')) {
      at += 2;
    } else {
      size_t end = getEnd(at);
      if (tokens[at].text != ".reg")
        readStatement(at, end);
      at = end;
    }
  }
  return view;
}

AssemblyView tessera::readAssembly(StringRef text) {
  std::optional<std::string> code = removeComments(text);
  if (!code)
    return {};
  std::optional<SmallVector<Token>> tokens = tokenize(*code);
  return tokens ? AssemblyReader(*tokens).read() : AssemblyView();
}
