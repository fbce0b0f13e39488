// Facts as text, instead of findings.
// RUN: %device-tidy --emit-facts=- %s %tiny | FileCheck %s --implicit-check-not=warning:
// RUN: %device-tidy --quiet --emit-facts=%t.facts %s %tiny | count 0
// RUN: FileCheck %s --input-file=%t.facts
// RUN: %python %S/../Inputs/expect_status.py 2 %device-tidy --emit-facts=%t.none/x %s %tiny
#include <torch/torch.h>

// CHECK: move
// CHECK: at::Tensor::cuda
void move(at::Tensor x) { x.cuda(); }
