// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/LayoutPrinter.h"

#include "tessera/Layout/Fragments.h"
#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/Swizzle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <map>

using namespace llvm;

namespace tessera {
namespace {

/// The places of each element, in order of block, warp, lane, register or of offset.
std::map<uint64_t, std::vector<Place>> placesOfElements(const LinearLayout &layout) {
  std::map<uint64_t, std::vector<Place>> places;
  uint64_t counts[kNumHwDims];
  for (HwDim dim : kAllHwDims)
    counts[static_cast<unsigned>(dim)] = uint64_t(1) << layout.columns(dim).size();
  Place place{};
  for (place[3] = 0; place[3] < counts[3]; ++place[3])
    for (place[2] = 0; place[2] < counts[2]; ++place[2])
      for (place[1] = 0; place[1] < counts[1]; ++place[1])
        for (place[0] = 0; place[0] < counts[0]; ++place[0])
          for (place[4] = 0; place[4] < counts[4]; ++place[4])
            places[layout.apply(place)].push_back(place);
  return places;
}

std::string nameOf(const LinearLayout &layout, const Place &place) {
  std::string name;
  const std::pair<HwDim, char> parts[] = {{HwDim::Block, 'b'},
                                          {HwDim::Warp, 'w'},
                                          {HwDim::Lane, 'l'},
                                          {HwDim::Reg, 'r'},
                                          {HwDim::Offset, 'o'}};
  for (auto [dim, letter] : parts) {
    if (layout.columns(dim).empty())
      continue;
    if (!name.empty())
      name += ' ';
    name += letter + utostr(place[static_cast<unsigned>(dim)]);
  }
  return name;
}

std::string labelOf(const LinearLayout &layout, ArrayRef<Place> places) {
  return join(map_range(places, [&](const Place &place) { return nameOf(layout, place); }), ",");
}

/// The last two extents, and how many matrices of them there are.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;

  explicit Matrices(const LinearLayout &layout) {
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      int64_t extent = int64_t(1) << layout.dimBits(dim);
      if (dim + 1 == layout.rank())
        columns = extent;
      else if (dim + 2 == layout.rank())
        rows = extent;
      else
        count *= extent;
    }
  }
};

void printRepeats(const LinearLayout &layout, raw_ostream &os) {
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    if (layout.oddFactor(dim) != 1)
      os << "dimension " << dim << " repeats this " << layout.oddFactor(dim) << " times\n";
}

} // namespace

void printTable(const LinearLayout &layout, raw_ostream &os) {
  layout.print(os);
  os << "\n";
  auto places = placesOfElements(layout);
  size_t width = 0;
  for (auto &[element, list] : places)
    width = std::max(width, labelOf(layout, list).size());
  Matrices shape(layout);
  for (int64_t matrix = 0; matrix < shape.count; ++matrix) {
    if (shape.count > 1)
      os << "matrix " << matrix << "\n";
    for (int64_t row = 0; row < shape.rows; ++row) {
      os << "[";
      for (int64_t column = 0; column < shape.columns; ++column) {
        std::string label =
            labelOf(layout, places[(matrix * shape.rows + row) * shape.columns + column]);
        os << (column ? " | " : "") << label;
        if (column + 1 < shape.columns)
          os.indent(width - label.size());
      }
      os << "]\n";
    }
  }
  printRepeats(layout, os);
}

void printBanks(const LinearLayout &memory, unsigned bits, raw_ostream &os) {
  constexpr unsigned wordBits = 8 * GPUMachine::kBankBytes, banks = GPUMachine::kBanks;
  memory.print(os);
  os << "\n";
  uint64_t elements = uint64_t(1) << memory.columns(HwDim::Offset).size();
  uint64_t words = divideCeil(elements * bits, wordBits);
  // The elements that have a part in each word.
  auto label = [&](uint64_t word) {
    std::string text;
    for (uint64_t offset = word * wordBits / bits;
         offset < std::min(elements, divideCeil((word + 1) * wordBits, bits)); ++offset) {
      Place place{};
      place[static_cast<unsigned>(HwDim::Offset)] = offset;
      text += (text.empty() ? "" : " ") +
              join(map_range(memory.coordinates(memory.apply(place)),
                             [](int64_t coordinate) { return itostr(coordinate); }),
                   ",");
    }
    return text;
  };
  size_t width = 0;
  for (uint64_t word = 0; word < words; ++word)
    width = std::max(width, label(word).size());
  for (uint64_t word = 0; word < words; ++word) {
    bool isFirst = word % banks == 0, isLast = word % banks == banks - 1 || word + 1 == words;
    if (isFirst)
      os << "line " << word / banks << " [";
    std::string text = label(word);
    os << (isFirst ? "" : " | ") << text;
    if (!isLast)
      os.indent(width - text.size());
    else
      os << "]\n";
  }
  printRepeats(memory, os);
}

void drawSvg(const LinearLayout &layout, unsigned bits, raw_ostream &os) {
  auto places = placesOfElements(layout);
  Matrices shape(layout);
  // Not of a GPU: dots and degrees of a picture.
  constexpr int cellWidth = 72, cellHeight = 24, margin = 8, baseline = 16;
  constexpr int circle = 360, dark = 60;
  int64_t rows = shape.count * shape.rows;
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                "font-family=\"monospace\" font-size=\"10\">\n",
                shape.columns * cellWidth + 2 * margin, rows * cellHeight + 2 * margin);
  bool isMemory = !layout.columns(HwDim::Offset).empty();
  for (auto &[element, list] : places) {
    const Place &first = list.front();
    // There are as many lanes as banks.
    uint64_t bank = first[4] * bits / (8 * GPUMachine::kBankBytes) % GPUMachine::kBanks;
    uint64_t colour = isMemory ? bank : first[1];
    int64_t row = element / shape.columns, column = element % shape.columns;
    int64_t x = margin + column * cellWidth, y = margin + row * cellHeight;
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" "
                  "fill=\"hsl({4}, 60%, {5}%)\" stroke=\"white\"/>\n",
                  x, y, cellWidth, cellHeight, colour * circle / GPUMachine::kBanks,
                  dark + first[2] % 4 * 8);
    os << formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", x + 4, y + baseline,
                  labelOf(layout, list));
  }
  os << "</svg>\n";
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// The words of a constructor, taken one after another; the first mistake is kept.
class Words {
public:
  Words(StringRef text, std::string &error) : error(error) {
    SmallVector<StringRef> words;
    SplitString(text, words);
    if (words.empty()) {
      fail("no layout is named");
      return;
    }
    name = words[0];
    if (words.size() < 2 || words[1].contains('=')) {
      fail("the name is followed by a shape, such as 64x32");
      return;
    }
    shape = numbers<int64_t>(words[1], 'x', "shape");
    for (int64_t extent : shape)
      if (extent <= 0)
        fail("extents are positive");
    for (StringRef word : ArrayRef(words).drop_front(2)) {
      auto [key, value] = word.split('=');
      given[key] = value;
    }
  }

  /// `count` powers of two under `key`.
  SmallVector<unsigned> list(StringRef key, size_t count, bool powers = true) {
    auto it = given.find(key);
    if (it == given.end()) {
      fail(name.str() + " needs " + key.str() + "=");
      return SmallVector<unsigned>(count, 1);
    }
    SmallVector<unsigned> values = numbers<unsigned>(it->second, ',', key);
    given.erase(it);
    if (values.size() != count)
      fail(key.str() + " takes " + utostr(count) + " numbers");
    values.resize(count, 1);
    for (unsigned value : values)
      if (powers && !isPowerOf2_32(value))
        fail(key.str() + " takes powers of two");
    return values;
  }
  /// The columns of a part of a place, as element numbers; none if it is not named.
  f2::Columns columns(StringRef key) {
    auto it = given.find(key);
    if (it == given.end())
      return {};
    SmallVector<uint64_t> values = numbers<uint64_t>(it->second, ',', key);
    given.erase(it);
    return {values.begin(), values.end()};
  }
  unsigned one(StringRef key, bool powers = true) { return list(key, 1, powers)[0]; }

  void fail(const std::string &message) {
    if (error.empty())
      error = message;
  }
  void finish() {
    for (auto &entry : given)
      fail(name.str() + " takes no " + entry.getKey().str() + "=");
  }

  StringRef name;
  SmallVector<int64_t> shape;

private:
  template <typename Number>
  SmallVector<Number> numbers(StringRef text, char separator, StringRef what) {
    SmallVector<StringRef> parts;
    text.split(parts, separator);
    SmallVector<Number> values;
    for (StringRef part : parts) {
      Number value = 0;
      if (part.getAsInteger(10, value))
        fail("'" + part.str() + "' in " + what.str() + " is no number");
      values.push_back(value);
    }
    return values;
  }

  std::string &error;
  StringMap<StringRef> given;
};

} // namespace

std::optional<LinearLayout> parseLayout(StringRef text, std::string &error) {
  error.clear();
  Words words(text, error);
  if (!error.empty())
    return std::nullopt;
  constexpr StringRef names[] = {"blocked",       "mma-accumulator",   "mma-operand-a",
                                 "mma-operand-b", "wgmma-accumulator", "wgmma-operand-a",
                                 "swizzle",       "nvidia-swizzle",    "columns"};
  if (!llvm::is_contained(names, words.name)) {
    error = "there is no layout '" + words.name.str() + "'; there are " +
            join(std::begin(names), std::end(names), ", ");
    return std::nullopt;
  }
  size_t rank = words.shape.size();
  if (words.name != "blocked" && words.name != "columns" && rank != 2) {
    error = words.name.str() + " takes a shape of two extents";
    return std::nullopt;
  }
  std::function<LinearLayout()> make;
  if (words.name == "blocked") {
    auto registers = words.list("registers", rank), lanes = words.list("lanes", rank);
    auto warps = words.list("warps", rank), order = words.list("order", rank, /*powers=*/false);
    SmallVector<unsigned> sorted = order;
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<unsigned>(0, rank)))
      words.fail("order is a permutation of the dimensions");
    make = [=, &words] { return blocked(words.shape, registers, lanes, warps, order); };
  } else if (words.name == "columns") {
    LinearLayout layout(words.shape);
    for (HwDim dim : kAllHwDims) {
      layout.columns(dim) = words.columns(getName(dim));
      for (uint64_t column : layout.columns(dim))
        if (column >> layout.elementBits())
          words.fail("the tile has no element " + utostr(column));
    }
    if (layout.columns(HwDim::Offset).empty() && layout.whyNotDistributed().size())
      words.fail(layout.whyNotDistributed());
    if (!layout.columns(HwDim::Offset).empty() && layout.whyNotMemory().size())
      words.fail(layout.whyNotMemory());
    make = [=] { return layout; };
  } else if (words.name == "mma-accumulator") {
    auto warps = words.list("warps", 2);
    make = [=, &words] { return mmaAccumulator(words.shape, warps[0], warps[1]); };
  } else if (words.name == "mma-operand-a" || words.name == "mma-operand-b") {
    auto warps = words.list("warps", 2);
    unsigned bits = words.one("bits"), k = words.one("k");
    bool isA = words.name == "mma-operand-a";
    make = [=, &words] {
      return isA ? mmaOperandA(words.shape, bits, k, warps[0], warps[1])
                 : mmaOperandB(words.shape, bits, k, warps[0], warps[1]);
    };
  } else if (words.name == "wgmma-accumulator") {
    auto groups = words.list("groups", 2);
    make = [=, &words] { return wgmmaAccumulator(words.shape, groups[0], groups[1]); };
  } else if (words.name == "wgmma-operand-a") {
    auto groups = words.list("groups", 2);
    unsigned bits = words.one("bits");
    make = [=, &words] { return wgmmaOperandA(words.shape, bits, groups[0], groups[1]); };
  } else if (words.name == "swizzle") {
    unsigned vec = words.one("vec"), perPhase = words.one("per-phase");
    unsigned maxPhase = words.one("max-phase");
    make = [=, &words] { return swizzledMemory(words.shape, vec, perPhase, maxPhase); };
  } else {
    unsigned width = words.one("width", /*powers=*/false), bits = words.one("bits");
    if (width != 0 && !Swizzle::isWidth(width))
      words.fail("width is 0, 32, 64 or 128");
    make = [=, &words] { return nvidiaSwizzle(words.shape, width, bits); };
  }
  words.finish();
  if (!error.empty())
    return std::nullopt;
  return make();
}

} // namespace tessera
