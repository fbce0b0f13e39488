#include "launch/VirtualGpus.h"

#include <gtest/gtest.h>

#include <utility>

namespace {

using namespace devicerun;

// The cases of the library's own tests: both must count alike.
TEST(VirtualGpus, VisibleOnesAreCountedAsTheLibraryDoes) {
  for (auto [list, count] : {std::pair{"0,2,1", 3},
                             {"3", 1},
                             {"1,4,0", 1},
                             {"-1,0", 0},
                             {"", 0},
                             {"1,1", 0},
                             {"GPU-8e0a,GPU-77aa", 2},
                             {"1,0,9", 2}})
    EXPECT_EQ(visibleVirtualGpus(list, 4), count) << list;
}

TEST(VirtualGpus, SanitizersStayInFront) {
  EXPECT_EQ(preloadList("/l/v.so", "", ""), "/l/v.so");
  EXPECT_EQ(preloadList("/l/v.so", "", "a.so:/b.so"), "/l/v.so:a.so:/b.so");
  EXPECT_EQ(preloadList("/l/v.so", "", "a.so libasan.so.8"), "libasan.so.8:/l/v.so:a.so");
  EXPECT_EQ(preloadList("/l/v.so", "/u/libasan.so.8", "a.so"), "/u/libasan.so.8:/l/v.so:a.so");
  EXPECT_EQ(preloadList("/l/v.so", "/u/libasan.so.8", "/u/libasan.so.8:a.so"),
            "/u/libasan.so.8:/l/v.so:a.so");
  EXPECT_EQ(preloadList("/l/v.so", "", "/x/libclang_rt.asan-x86_64.so"),
            "/x/libclang_rt.asan-x86_64.so:/l/v.so");
}

TEST(VirtualGpus, ProgramsWithoutASanitizer) {
  EXPECT_EQ(sanitizerOf("/bin/sh"), "");
  EXPECT_EQ(sanitizerOf("/no/such/program"), "");
}

} // namespace
