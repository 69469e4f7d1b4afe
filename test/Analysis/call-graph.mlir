// RUN: tessera-opt --test-call-graph --split-input-file --verify-diagnostics %s -o /dev/null

// Callees come first, each function once.
// expected-remark@+1 {{place 2, depth 2}}
tile.func @kernel() {
  tile.call @outer() : () -> ()
  tile.call @inner() : () -> ()
  tile.return
}
// expected-remark@+1 {{place 1, depth 1}}
tile.func private @outer() {
  tile.call @inner() : () -> ()
  tile.call @inner() : () -> ()
  tile.return
}
// expected-remark@+1 {{place 0, depth 0}}
tile.func private @inner() {
  tile.return
}
// expected-remark@+1 {{place 3, depth 0}}
tile.func private @alone() {
  tile.return
}

// -----

tile.func @kernel() {
  tile.call @even() : () -> ()
  tile.return
}
// expected-error@+1 {{recursion is not supported: 'even' calls itself}}
tile.func private @even() {
  tile.call @odd() : () -> ()
  tile.return
}
// expected-note@+1 {{through 'odd'}}
tile.func private @odd() {
  tile.call @even() : () -> ()
  tile.return
}
