// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of XLA's foreign function interface that the handlers (XLA.cpp) use. It is a stable C
// ABI: structs have a member with their size, and grow only at their ends. So a later XLA may pass
// longer structs than these, and the size shows which members an earlier one lacks. Compared with
// the headers of versions 0.1 to 0.5. The names are Tessera's; the comment at each struct has
// XLA's.

#ifndef TESSERA_LIB_CAPI_XLAINTERFACE_H
#define TESSERA_LIB_CAPI_XLAINTERFACE_H

#include <cstddef>
#include <cstdint>

namespace tessera::xla {

inline constexpr int kMajorVersion = 0;
inline constexpr int kOldestMinorVersion = 1;
inline constexpr int kNewestMinorVersion = 4;

/// XLA_FFI_Extension_Base.
struct Extension {
  size_t size;
  int32_t type;
  Extension *next;
};
inline constexpr int32_t kMetadataExtension = 1;

/// XLA_FFI_Api_Version.
struct Version {
  size_t size;
  Extension *extensions;
  int32_t major;
  int32_t minor;
};

/// XLA_FFI_Metadata: the properties of a handler at its registration.
struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
};
/// The launches can be recorded into a command buffer: a CUDA graph.
inline constexpr uint32_t kIsRecordable = 1;

/// XLA_FFI_Metadata_Extension.
struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

struct Failure; ///< XLA_FFI_Error
struct Context; ///< XLA_FFI_ExecutionContext

/// XLA_FFI_Error_Create_Args.
struct FailureArgs {
  size_t size;
  Extension *extensions;
  const char *message;
  int32_t code;
};
inline constexpr int32_t kInvalidArgument = 3;
inline constexpr int32_t kInternal = 13;

/// XLA_FFI_Stream_Get_Args.
struct StreamArgs {
  size_t size;
  Extension *extensions;
  Context *context;
  void *stream;
};

/// XLA_FFI_Api, up to the fields that are used.
struct Functions {
  size_t size;
  Extension *extensions;
  Version version;
  const void *internal;
  Failure *(*createFailure)(FailureArgs *);
  void *otherFunctions[3]; // of failures' messages, their ends, registration
  Failure *(*getStream)(StreamArgs *);
};

/// XLA_FFI_Buffer, up to the fields that are used.
struct Buffer {
  size_t size;
  Extension *extensions;
  int32_t dtype;
  void *data;
};

/// XLA_FFI_Args, and XLA_FFI_Rets, which looks the same.
struct Buffers {
  size_t size;
  Extension *extensions;
  int64_t count;
  const int32_t *types;
  void **buffers;
};
inline constexpr int32_t kBuffer = 1;

/// XLA_FFI_ByteSpan.
struct Text {
  const char *data;
  size_t length;
};

/// XLA_FFI_Array.
struct Array {
  int32_t dtype;
  size_t count;
  void *data;
};
inline constexpr int32_t kS64 = 5;
inline constexpr int32_t kU8 = 6;

/// XLA_FFI_Attrs.
struct Attributes {
  size_t size;
  Extension *extensions;
  int64_t count;
  const int32_t *types;
  Text **names;
  void **values;
};
inline constexpr int32_t kArray = 1;
inline constexpr int32_t kText = 4;

/// XLA_FFI_CallFrame, up to the fields that are used.
struct Call {
  size_t size;
  Extension *extensions;
  const Functions *functions;
  Context *context;
  int32_t stage;
  Buffers inputs;
  Buffers outputs;
  Attributes attributes;
};
static_assert(offsetof(Call, inputs) == 40 && offsetof(Call, attributes) == 120 &&
                  sizeof(Call) == 168 && offsetof(Functions, getStream) == 80,
              "XLA has laid these out with 8-byte pointers");

} // namespace tessera::xla

#endif // TESSERA_LIB_CAPI_XLAINTERFACE_H
