// RUN: tessera-opt --split-input-file %s | FileCheck %s

// Each row of the table of GPUs has a name, which is looked up when the attribute is read.

// CHECK: module attributes {tilegpu.target = #tilegpu.target<"sm_90a">}
module attributes {tilegpu.target = #tilegpu.target<"sm_90a">} {}

// -----

// CHECK: module attributes {tilegpu.target = #tilegpu.target<"sm_120a">}
module attributes {tilegpu.target = #tilegpu.target<"sm_120a">} {}
