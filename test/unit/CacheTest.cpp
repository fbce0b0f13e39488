#include "analyzer/cache/UnitCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include "gtest/gtest.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

using namespace devicetidy;
using namespace devicetidy::cache;
namespace fs = llvm::sys::fs;

namespace {

/// A directory with a project in src, headers in include and a cache beside them.
class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> place;
    ASSERT_FALSE(fs::createUniqueDirectory("cache-test", place));
    llvm::SmallString<128> real; // /tmp may be a link
    ASSERT_FALSE(fs::real_path(place, real));
    root = real.str().str();
    for (const char *folder : {"src", "include", "early"})
      ASSERT_FALSE(fs::create_directory(root + "/" + folder));
    write("src/main.cpp", "int main() {}\n");
    for (int i = 0; i < 100; ++i)
      write("include/part" + std::to_string(i) + ".h", "int part" + std::to_string(i) + ";\n");
  }
  void TearDown() override { fs::remove_directories(root); }

  std::string path(const std::string &name) const { return root + "/" + name; }

  void write(const std::string &name, const std::string &text) const {
    fs::create_directories(llvm::sys::path::parent_path(path(name)));
    std::ofstream(path(name), std::ios::binary) << text;
  }

  /// Gives a file the time it would have had it been written long ago.
  void age(const std::string &name) const {
    struct timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(0, ::utimensat(AT_FDCWD, path(name).c_str(), times, 0));
  }

  FileTrace trace() const {
    FileTrace result;
    std::vector<std::string> names{"src/main.cpp"};
    for (int i = 0; i < 100; ++i)
      names.push_back("include/part" + std::to_string(i) + ".h");
    for (const std::string &name : names) {
      struct stat found;
      if (::stat(path(name).c_str(), &found) == 0)
        result.reads.push_back({Name(path(name)), static_cast<std::uint64_t>(found.st_size),
                                static_cast<std::uint64_t>(found.st_ino),
                                found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec});
    }
    std::sort(result.reads.begin(), result.reads.end(),
              [](const auto &a, const auto &b) { return a.path < b.path; });
    result.absent = {path("early/part7.h"), path("gone/part7.h")};
    return result;
  }

  Unit unit() const {
    Unit result;
    result.mainFile = path("src/main.cpp");
    for (const FileTrace::Read &read : trace().reads)
      result.files.push_back(read.path);
    Function function;
    function.id = "main";
    function.isMain = function.hasBody = true;
    function.where = {result.mainFile, 1, 5, 1, 9};
    result.functions["main"] = function;
    result.parseErrors = {"a.cpp:1:1: error: kept too"};
    return result;
  }

  bool isProject(const std::string &file) const { return file.rfind(root + "/src/", 0) == 0; }

  /// One run of the program.
  struct Run {
    explicit Run(const CacheTest &test, std::uint64_t limit = BlobStore::defaultLimit)
        : store(test.path("cache"), limit),
          units(store, states, [&test](const std::string &file) { return test.isProject(file); }) {}
    BlobStore store;
    FileStates states;
    UnitCache units;
  };

  Digest key() const { return UnitCache::key(root, path("src/main.cpp"), {"clang++", "main.cpp"}); }
  void keep() const { Run(*this).units.keep(key(), unit(), trace()); }
  bool isFound() const { return Run(*this).units.find(key()).has_value(); }

  /// The files of the cache whose path has `part` in it.
  std::vector<std::string> stored(const std::string &part) const {
    std::vector<std::string> files;
    std::error_code code;
    for (fs::recursive_directory_iterator entry(path("cache"), code), end; !code && entry != end;
         entry.increment(code))
      if (!fs::is_directory(entry->path()) && entry->path().find(part) != std::string::npos)
        files.push_back(entry->path());
    return files;
  }

  std::string root;
};

TEST_F(CacheTest, givesBackWhatWasKept) {
  EXPECT_FALSE(isFound());
  keep();
  const auto found = Run(*this).units.find(key());
  ASSERT_TRUE(found);
  EXPECT_EQ(unit().files, found->unit.files);
  EXPECT_EQ(unit().mainFile, found->unit.mainFile);
  EXPECT_EQ(unit().parseErrors, found->unit.parseErrors);
  EXPECT_EQ(1u, found->unit.functions.count("main"));
}

TEST_F(CacheTest, keyDependsOnEveryPartOfTheCommand) {
  const Digest base = UnitCache::key("/d", "/d/a.cpp", {"clang++", "-DX"});
  EXPECT_EQ(base, UnitCache::key("/d", "/d/a.cpp", {"clang++", "-DX"}));
  EXPECT_NE(base, UnitCache::key("/e", "/d/a.cpp", {"clang++", "-DX"}));
  EXPECT_NE(base, UnitCache::key("/d", "/d/b.cpp", {"clang++", "-DX"}));
  EXPECT_NE(base, UnitCache::key("/d", "/d/a.cpp", {"clang++", "-D", "X"}));
  EXPECT_NE(base, UnitCache::key("/d", "/d/a.cpp", {"clang++"}));
  ::setenv("CPLUS_INCLUDE_PATH", "/elsewhere", 1);
  EXPECT_NE(base, UnitCache::key("/d", "/d/a.cpp", {"clang++", "-DX"}));
  ::unsetenv("CPLUS_INCLUDE_PATH");
}

TEST_F(CacheTest, changedSourceOrHeaderIsNotFound) {
  keep();
  write("src/main.cpp", "int main() { }\n");
  EXPECT_FALSE(isFound());
  keep();
  EXPECT_TRUE(isFound());
  write("include/part50.h", "int part5O;\n"); // same size: only the bytes tell
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, aCommentIsAChange) {
  keep();
  write("src/main.cpp", "int main() {} // NOLINT\n");
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, touchedFilesAreReadOnceMoreAndThenNot) {
  keep();
  for (int i = 0; i < 100; ++i)
    age("include/part" + std::to_string(i) + ".h"); // the ctime is that of now, so it is not trusted yet
  age("src/main.cpp");
  Run first(*this);
  EXPECT_TRUE(first.units.find(key()));
  EXPECT_EQ(101u, first.states.hashedFiles());
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_TRUE(isFound()); // renews the stamps, which are old enough now
  Run third(*this);
  EXPECT_TRUE(third.units.find(key()));
  EXPECT_EQ(0u, third.states.hashedFiles());
}

TEST_F(CacheTest, headerThatAppearsEarlierInTheSearchIsAChange) {
  keep();
  write("early/unrelated.h", "");
  EXPECT_TRUE(isFound());
  write("early/part7.h", "int other;\n");
  EXPECT_FALSE(isFound());
  fs::remove(path("early/part7.h"));
  EXPECT_TRUE(isFound());
  ASSERT_FALSE(fs::create_directory(path("gone")));
  EXPECT_TRUE(isFound());
  write("gone/part7.h", "");
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, vanishedHeaderIsAChange) {
  keep();
  fs::remove(path("include/part3.h"));
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, nothingIsKeptOfAFileThatChangedDuringTheParse) {
  const FileTrace before = trace();
  write("include/part3.h", "int changed_meanwhile;\n");
  Run(*this).units.keep(key(), unit(), before);
  EXPECT_FALSE(isFound());
  fs::remove(path("include/part3.h"));
  Run(*this).units.keep(key(), unit(), before);
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, otherProjectFilesAreAChange) {
  keep();
  BlobStore store(path("cache"));
  FileStates states;
  UnitCache all(store, states, [](const std::string &) { return true; });
  EXPECT_FALSE(all.find(key()));
}

TEST_F(CacheTest, unitsShareTheListOfThirdPartyFiles) {
  keep();
  Run run(*this);
  const Digest other = UnitCache::key(root, path("src/main.cpp"), {"clang++", "-O2", "main.cpp"});
  run.units.keep(other, unit(), trace());
  EXPECT_EQ(2u, stored("/units/").size());
  EXPECT_EQ(1u, stored("/sets/").size());
  EXPECT_TRUE(Run(*this).units.find(other));
}

TEST_F(CacheTest, damagedEntriesAreAbsent) {
  for (const char *kind : {"/units/", "/sets/"}) {
    keep();
    const std::string file = stored(kind).at(0);
    std::ifstream stream(file, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(stream)), {});
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{40}, good.size() - 1}) {
      std::ofstream(file, std::ios::binary) << good.substr(0, size);
      EXPECT_FALSE(isFound()) << kind << " cut to " << size;
    }
    for (const std::size_t at : {std::size_t{3}, std::size_t{20}, good.size() / 2}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x40);
      std::ofstream(file, std::ios::binary) << bad;
      EXPECT_FALSE(isFound()) << kind << " with another byte at " << at;
    }
    std::ofstream(file, std::ios::binary) << good;
    EXPECT_TRUE(isFound());
    fs::remove(file);
    EXPECT_FALSE(isFound());
    keep();
    EXPECT_TRUE(isFound());
  }
}

TEST_F(CacheTest, placeThatCannotBeWrittenIsAProblemAndNoError) {
  write("cache", "a file where the directory should be");
  Run run(*this);
  run.units.keep(key(), unit(), trace());
  EXPECT_FALSE(run.units.find(key()));
  EXPECT_NE("", run.store.problem());
}

TEST_F(CacheTest, fullDiskIsAProblemAndLeavesNothing) {
  // A limit on the size of files stands in for the disk: writing fails in the same way.
  struct rlimit old;
  ASSERT_EQ(0, ::getrlimit(RLIMIT_FSIZE, &old));
  struct rlimit small = {1000, old.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &small));
  Run run(*this);
  run.units.keep(key(), unit(), trace());
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &old));
  ::signal(SIGXFSZ, handler);
  EXPECT_NE("", run.store.problem());
  EXPECT_TRUE(stored("/").empty());
  EXPECT_FALSE(isFound());
}

TEST_F(CacheTest, trimRemovesWhatWasNotUsedForLongest) {
  Run run(*this, /*limit=*/10'000);
  const auto name = [](std::uint64_t i) { return digestOf(std::to_string(i)); };
  for (std::uint64_t i = 0; i < 8; ++i) {
    run.store.write("units", name(i), std::string(2000, 'x'));
    struct timespec times[2] = {{static_cast<time_t>(1'000'000 + i), 0},
                                {static_cast<time_t>(1'000'000 + i), 0}};
    ASSERT_EQ(0, ::utimensat(AT_FDCWD, run.store.path("units", name(i)).c_str(), times, 0));
  }
  EXPECT_TRUE(run.store.read("units", name(0))); // used now
  run.store.trim();
  EXPECT_TRUE(run.store.read("units", name(0)));
  EXPECT_TRUE(run.store.read("units", name(7)));
  EXPECT_FALSE(run.store.read("units", name(1)));
  EXPECT_FALSE(run.store.read("units", name(2)));
  EXPECT_LE(stored("/units/").size(), 4u);
}

TEST_F(CacheTest, trimKeepsOldFactsBesideNewPreambles) {
  Run run(*this, /*limit=*/20'000);
  const auto name = [](std::uint64_t i) { return digestOf(std::to_string(i)); };
  const auto write = [&](const char *kind, std::uint64_t i, std::time_t when) {
    run.store.write(kind, name(i), std::string(2000, 'x'));
    struct timespec times[2] = {{when, 0}, {when, 0}};
    ASSERT_EQ(0, ::utimensat(AT_FDCWD, run.store.path(kind, name(i)).c_str(), times, 0));
  };
  for (std::uint64_t i = 0; i < 4; ++i)
    write("units", i, 1'000'000);
  for (std::uint64_t i = 0; i < 9; ++i)
    write("preambles", i, static_cast<std::time_t>(2'000'000 + i));
  run.store.trim();
  EXPECT_EQ(4u, stored("/units/").size());
  EXPECT_LE(stored("/preambles/").size(), 4u);
  EXPECT_TRUE(run.store.read("preambles", name(8)));
}

TEST_F(CacheTest, trimRemovesOnlyWhatIsOurs) {
  write("cache/notes.txt", std::string(5000, 'x'));
  write("cache/trixie/usr/header.h", std::string(5000, 'x'));
  write("cache/units/theirs/file", std::string(5000, 'x'));
  Run run(*this, /*limit=*/3'000);
  run.store.write("units", digestOf("a"), std::string(2000, 'x'));
  run.store.write("units", digestOf("b"), std::string(2000, 'x'));
  run.store.trim();
  for (const char *file : {"cache/notes.txt", "cache/trixie/usr/header.h", "cache/units/theirs/file"})
    EXPECT_TRUE(fs::exists(path(file))) << file;
  EXPECT_LE(stored("/units/").size(), 2u); // theirs and one of ours
}

TEST_F(CacheTest, clearRemovesOnlyWhatIsOurs) {
  keep();
  write("cache/notes.txt", "mine");
  write("cache/units/theirs/file", "mine");
  std::string error;
  BlobStore store(path("cache"));
  EXPECT_TRUE(store.clear(error)) << error;
  EXPECT_FALSE(isFound());
  EXPECT_TRUE(fs::exists(path("cache/notes.txt")));
  EXPECT_TRUE(fs::exists(path("cache/units/theirs/file")));
}

TEST_F(CacheTest, manyAtOnceNeverSeeHalfAnEntry) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        Run run(*this);
        run.units.keep(key(), unit(), trace());
        if (!run.units.find(key()))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(0, wrong);
  EXPECT_TRUE(stored(".new").empty());
}

} // namespace
