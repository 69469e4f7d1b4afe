// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/Support/EmitRemark.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tessera;

namespace {

class RemarkTest : public testing::Test {
protected:
  RemarkTest()
      : place(FileLineColLoc::get(&context, "k.py", 12, 3)),
        handler(&context, [&](Diagnostic &diagnostic) {
          ids.push_back(getUserErrorId(diagnostic).str());
          remarks.push_back(Remark::of(diagnostic));
          return success();
        }) {}

  MLIRContext context;
  Location place;
  std::vector<std::string> ids;
  std::vector<Remark> remarks;
  ScopedDiagnosticHandler handler;
};

TEST_F(RemarkTest, TextIsMadeOfItsValues) {
  emitRemark(place, RemarkKind::FewerStages)
      << "a loop of " << named("element", Type(Float16Type::get(&context))) << " has "
      << named("stages", 2) << " stages, not " << named("wanted", int64_t(4)) << ": "
      << named("reason", std::string("it is long"));
  ASSERT_EQ(remarks.size(), 1u);
  const Remark &remark = remarks.front();
  EXPECT_EQ(remark.print(), "k.py:12:3: a loop of 'f16' has 2 stages, not 4: it is long");
  EXPECT_EQ(remark.kind, RemarkKind::FewerStages);
  EXPECT_EQ(remark.place, (SourcePlace{"k.py", 12, 3}));
  ASSERT_EQ(remark.values.size(), 4u);
  EXPECT_EQ(remark.values[1], std::make_pair(std::string("stages"), Remark::Value(int64_t(2))));
  EXPECT_EQ(remark.get("element"), "f16");
  EXPECT_EQ(remark.get("reason"), "it is long");
  EXPECT_EQ(remark.get("wanted"), "");
  EXPECT_EQ(ids.front(), "");
}

TEST_F(RemarkTest, OthersHaveNoKind) {
  emitWarning(place, "beware");
  EXPECT_EQ(remarks.front().kind, RemarkKind::Other);
  EXPECT_EQ(remarks.front().message, "beware");
}

TEST_F(RemarkTest, ErrorsHaveIds) {
  emitUserError(place, "E030") << "no";
  emitError(place) << "a bug";
  EXPECT_EQ(ids, (std::vector<std::string>{"E030", ""}));
}

TEST_F(RemarkTest, KindsHaveNames) {
  for (int kind = 0; kind <= int(RemarkKind::Other); ++kind)
    EXPECT_EQ(symbolizeRemarkKind(stringify(RemarkKind(kind))), RemarkKind(kind));
  EXPECT_EQ(symbolizeRemarkKind("fewer stages"), std::nullopt);
}

TEST_F(RemarkTest, PlacesAreRead) {
  EXPECT_EQ(SourcePlace::parse("/a:b/k.py:12:3"), (SourcePlace{"/a:b/k.py", 12, 3}));
  EXPECT_EQ(SourcePlace::parse("kernel").print(), "kernel");
  Location inlined = CallSiteLoc::get(place, FileLineColLoc::get(&context, "caller.py", 1, 1));
  EXPECT_EQ(SourcePlace::of(NameLoc::get(StringAttr::get(&context, "x"), inlined)).print(),
            "k.py:12:3");
}

} // namespace
