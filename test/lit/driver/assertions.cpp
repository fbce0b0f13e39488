// An object whose destructor does not return ends its way; a loop around nothing else is no loop.
// RUN: %device-tidy --emit-facts=- %s %compile | FileCheck %s

struct Fatal {
  explicit Fatal(const char *text);
  Fatal &stream();
  [[noreturn]] ~Fatal();
};
bool wrong(int n);

// CHECK-LABEL: function {{.*}} name=asserted
// CHECK: branch ({{.*}}) b1, b{{[0-9]+}} @
// CHECK-NOT: enters
// CHECK: construct Fatal::Fatal
// CHECK-NEXT: unreachable
int asserted(int n) {
  while (wrong(n))
    Fatal("n").stream();
  return n;
}

// CHECK-LABEL: function {{.*}} name=counted
// CHECK: branch ({{.*}}) b1, b{{[0-9]+}} enters
int counted(int n) {
  while (wrong(n))
    --n;
  return n;
}
