// RUN: tessera-opt --tilegpu-insert-barriers --verify-diagnostics %s

// expected-error @below {{has no places in shared memory yet (tilegpu-allocate-shared-memory)}}
module {
}
