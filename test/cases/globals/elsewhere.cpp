// A global of a project class that is defined in a file the analysis does not see.
#include "../cases.h"

#include <torch/torch.h>

namespace {

struct Table {
  int mask = 0;
  void set(int value) { mask = value; }
};
extern Table table;
Table other;

void declared_only_bad() {
  other.set(3);
  auto a = torch::ones(3, torch::kCUDA), b = torch::ones(3);
  if (other.mask > table.mask)
    a = a + b; // [[device-mixed-op]]
}

#ifdef DT_RUN
Table table;
#endif

} // namespace

DT_MAIN(declared_only_bad)
