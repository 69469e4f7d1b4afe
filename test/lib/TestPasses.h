// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The test-only passes that tessera-opt registers where tests are built.

#ifndef TESSERA_TEST_LIB_TESTPASSES_H
#define TESSERA_TEST_LIB_TESTPASSES_H

namespace tessera::test {

void registerTestAccessPass();
void registerTestAssemblePass();
void registerTestBoxAccessPasses();
void registerTestCallGraphPass();
void registerTestFailPass();
void registerTestMachineViewPass();
void registerTestMemoryOrderPass();
void registerTestReplicationPass();
void registerTestRowDotPass();
void registerTestSharedMemoryPasses();
void registerTestTargetHooksPass();

inline void registerAllTestPasses() {
  registerTestAccessPass();
  registerTestAssemblePass();
  registerTestBoxAccessPasses();
  registerTestCallGraphPass();
  registerTestFailPass();
  registerTestMachineViewPass();
  registerTestMemoryOrderPass();
  registerTestReplicationPass();
  registerTestRowDotPass();
  registerTestSharedMemoryPasses();
  registerTestTargetHooksPass();
}

} // namespace tessera::test

#endif // TESSERA_TEST_LIB_TESTPASSES_H
