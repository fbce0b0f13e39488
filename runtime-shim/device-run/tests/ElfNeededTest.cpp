#include "base/ElfNeeded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace {

using namespace devicerun;

bool names(const std::vector<std::string> &list, const std::string &start) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string &name) { return name.compare(0, start.size(), start) == 0; });
}

TEST(ElfNeeded, ReadsThisProgram) {
  std::optional<ElfFile> self = readElf("/proc/self/exe");
  ASSERT_TRUE(self);
  EXPECT_NE(self->interpreter.find("ld"), std::string::npos);
  EXPECT_TRUE(names(self->needed, "libc.so"));
  EXPECT_TRUE(names(self->needed, "libfmt"));
}

TEST(ElfNeeded, AsksTheLoaderForTheRest) {
  std::optional<ElfFile> self = readElf("/proc/self/exe");
  ASSERT_TRUE(self);
  std::vector<Library> libraries = librariesOf("/proc/self/exe", *self);
  // The loader runs as another process, whose /proc/self is its own.
  EXPECT_TRUE(libraries.empty());
  char path[4096] = "";
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  ASSERT_GT(length, 0);
  libraries = librariesOf(std::string(path, static_cast<std::size_t>(length)), *self);
  bool found = std::any_of(libraries.begin(), libraries.end(), [](const Library &library) {
    return library.name.compare(0, 6, "libfmt") == 0 && library.path.front() == '/';
  });
  EXPECT_TRUE(found);
}

TEST(ElfNeeded, OtherAndDamagedFiles) {
  EXPECT_FALSE(readElf("/proc/self/status"));
  EXPECT_FALSE(readElf("/no/such/file"));
  EXPECT_FALSE(readElf("/proc"));
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(self)), std::istreambuf_iterator<char>());
  const std::string copy = testing::TempDir() + "/damaged-elf";
  for (std::size_t length : {4U, 63U, 64U, 200U, 1000U}) {
    std::ofstream(copy, std::ios::binary) << bytes.substr(0, length);
    readElf(copy); // whatever it finds, it must come back
  }
  for (std::size_t at = 16; at < 1024 && at < bytes.size(); at += 3) {
    std::string damaged = bytes.substr(0, 65536);
    damaged[at] = static_cast<char>(0xff);
    std::ofstream(copy, std::ios::binary) << damaged;
    readElf(copy);
  }
  std::remove(copy.c_str());
}

} // namespace
