// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-accelerate-matmul %s

// expected-error@+1 {{does not say for which target and how many warps it is}}
module {
}
