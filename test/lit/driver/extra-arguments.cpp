// RUN: not %device-tidy --extra-arg=-DMOVE=x.cuda() %s %tiny | FileCheck %s
// RUN: not %device-tidy --extra-arg-before=-DMOVE=x.cuda() %s %tiny | FileCheck %s
// RUN: %device-tidy --extra-arg-before=-DMOVE=x.cuda() --extra-arg=-UMOVE %s %tiny | count 0
#include <torch/torch.h>

void move(at::Tensor x) {
#ifdef MOVE
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: {{.*}}'cuda'
  MOVE;
#endif
}
