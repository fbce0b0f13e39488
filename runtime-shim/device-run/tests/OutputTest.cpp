#include "process/LinePrefixer.h"
#include "process/OutputQueue.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include <unistd.h>

namespace {

using namespace devicerun;

TEST(LinePrefixer, WaitsForWholeLines) {
  LinePrefixer prefixer("[rank 1] ");
  std::string out;
  prefixer.feed("one\ntw", out);
  EXPECT_EQ(out, "[rank 1] one\n");
  prefixer.feed("o\n\nthree", out);
  EXPECT_EQ(out, "[rank 1] one\n[rank 1] two\n[rank 1] \n");
  prefixer.finish(out);
  EXPECT_EQ(out, "[rank 1] one\n[rank 1] two\n[rank 1] \n[rank 1] three\n");
  prefixer.finish(out);
  EXPECT_EQ(out.substr(out.size() - 6), "three\n");
}

TEST(LinePrefixer, WithoutPrefixBytesPassThrough) {
  LinePrefixer prefixer("");
  std::string out;
  prefixer.feed(std::string_view("a\0b\nc", 5), out);
  prefixer.finish(out);
  EXPECT_EQ(out, std::string("a\0b\nc", 5));
}

TEST(LinePrefixer, EndlessLinesAreCut) {
  LinePrefixer prefixer("p ");
  std::string out;
  prefixer.feed(std::string(LinePrefixer::longestLine + 3, 'x'), out);
  EXPECT_EQ(out.size(), LinePrefixer::longestLine + 3);
  prefixer.finish(out);
  EXPECT_EQ(out.substr(out.size() - 6), "p xxx\n");
}

TEST(LineTail, KeepsTheLast) {
  LineTail tail(2);
  tail.feed("a\nb\nc\nd");
  EXPECT_EQ(tail.lines(), (std::deque<std::string>{"c", "d"}));
  tail.feed("\n");
  EXPECT_EQ(tail.lines(), (std::deque<std::string>{"c", "d"}));
}

TEST(LineTail, KeepsTheErrorAboveABacktrace) {
  LineTail tail(4);
  tail.feed(
      "old\nterminate called\n  what():  shapes do not fit\nException raised (most recent call first):\n");
  for (int i = 0; i < 30; ++i)
    tail.feed("frame #" + std::to_string(i) + ": main + 0x55 (0x1 in ./train)\n");
  EXPECT_EQ(tail.lines(), (std::deque<std::string>{
                              "terminate called", "  what():  shapes do not fit",
                              "Exception raised (most recent call first):", "(30 frames of a backtrace)"}));
  tail.feed("\nframe #1: x\nframe #: no\n");
  EXPECT_EQ(tail.lines(), (std::deque<std::string>{"(30 frames of a backtrace)", "",
                                                   "(1 frame of a backtrace)", "frame #: no"}));
}

TEST(OutputQueue, FlushNeverBlocksAndDrainDelivers) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  OutputQueue queue(ends[1]);
  const std::string text(3 << 20, 'y'); // more than any pipe holds
  queue.buffer() += text;
  queue.flush();
  EXPECT_FALSE(queue.empty());
  std::size_t received = 0;
  std::thread reader([&] {
    std::array<char, 4096> block{};
    for (ssize_t count = read(ends[0], block.data(), block.size()); count > 0;
         count = read(ends[0], block.data(), block.size()))
      received += static_cast<std::size_t>(count);
  });
  queue.drain();
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(received, text.size());
  EXPECT_TRUE(queue.empty());
}

} // namespace
