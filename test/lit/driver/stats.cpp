// RUN: not %device-tidy --stats %s %tiny 2>&1 >%t.out | FileCheck %s --implicit-check-not=usedHere
// CHECK: time in seconds:
// CHECK-DAG: parsing
// CHECK-DAG: solving
// CHECK: total
// CHECK: 1 translation units
// CHECK: {{[1-9][0-9]*}} functions with a body
// CHECK: {{[1-9][0-9]*}} facts
// CHECK: bounds that were hit (1 in all, 1 different):
// CHECK-NEXT: 1  elements of one list
// CHECK: templates without an instantiation, not analysed (2 in all, 2 different):
// CHECK-NEXT: 1  Unused::get
// CHECK-NEXT: 1  forNobody
#include <torch/torch.h>

#include <vector>

void move(at::Tensor x) { x.cuda(); }

void fill(at::Tensor x) { std::vector<at::Tensor> many(17, x); }

template <typename T> void forNobody(T x) { x.cuda(); }
template <typename T> void usedHere(T x) { x.cuda(); }

template <typename T> struct Holder {
  void usedHereToo() {}
};

template <typename T> struct Unused {
  T get() { return T(); }
};

void use(at::Tensor x) {
  usedHere(x);
  Holder<at::Tensor> holder;
  holder.usedHereToo();
}
