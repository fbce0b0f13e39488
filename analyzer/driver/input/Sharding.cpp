#include "analyzer/driver/input/Sharding.h"

#include "analyzer/cache/Digest.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace devicetidy::driver {
ShardMark keepShard(std::vector<CompileCommand> &commands, const Shard &shard) {
  if (shard.count == 0)
    return {};
  std::map<std::string, std::size_t> files; // -> its number in the sorted list
  for (const CompileCommand &command : commands)
    files.emplace(command.file, 0);
  std::size_t next = 0;
  for (auto &[file, number] : files)
    number = next++;
  cache::DigestBuilder builder;
  for (const auto &[file, number] : files)
    builder.add(file);
  const cache::Digest list = builder.finish();
  const ShardMark mark{shard.index, shard.count, commands.size(), list.high, list.low};
  llvm::erase_if(commands, [&](const CompileCommand &command) {
    return files.at(command.file) % shard.count != shard.index - 1;
  });
  return mark;
}

} // namespace devicetidy::driver
