// The tests, or with `--worker NAME` one rank of a test.
#include "Ranks.h"

int main(int argc, char **argv) {
  const int code = ranks::runWorker(argc, argv);
  if (code >= 0)
    return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
