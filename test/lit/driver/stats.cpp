// RUN: not %device-tidy --stats %s %tiny 2>&1 >%t.out | FileCheck %s
// CHECK: time in seconds:
// CHECK-DAG: parsing
// CHECK-DAG: solving
// CHECK: total
// CHECK: 1 translation units
// CHECK: {{[1-9][0-9]*}} functions with a body
// CHECK: {{[1-9][0-9]*}} facts
#include <torch/torch.h>

void move(at::Tensor x) { x.cuda(); }
