#include "base/Descendants.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace {

using namespace devicerun;

TEST(Descendants, Parent) {
  EXPECT_EQ(livingParent("/proc/self/stat"), getppid());
  EXPECT_EQ(livingParent("/proc/no-such-process/stat"), 0);
}

// Opens and fails to be read, as the file of a process does that has ended since.
TEST(Descendants, UnreadableFile) { EXPECT_EQ(livingParent("/proc/self/mem"), 0); }

} // namespace
