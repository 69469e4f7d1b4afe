// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{there is no GPU architecture 'sm_91'; wanted is sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103a, sm_120 or sm_120a}}
module attributes {tilegpu.target = #tilegpu.target<"sm_91">} {}

// -----

// expected-error @below {{expected string}}
module attributes {tilegpu.target = #tilegpu.target<90>} {}

// -----

// expected-error @below {{has the target "sm_90a"; wanted is one such as #tilegpu.target<"sm_90a">}}
module attributes {tilegpu.target = "sm_90a"} {}
