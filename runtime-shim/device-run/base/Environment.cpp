#include "base/Environment.h"

#include <cstring>

#include <unistd.h>

namespace devicerun {

Environment currentEnvironment() {
  Environment environment;
  for (char **entry = environ; *entry; ++entry)
    if (const char *equals = std::strchr(*entry, '='))
      environment.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  return environment;
}

std::vector<std::string> toStrings(const Environment &environment) {
  std::vector<std::string> strings;
  strings.reserve(environment.size());
  for (const auto &[name, value] : environment)
    strings.emplace_back(name).append("=").append(value);
  return strings;
}

void setRankVariables(Environment &environment, const RankIdentity &who, const Rendezvous &where) {
  auto set = [&](const char *name, int value) { environment[name] = std::to_string(value); };
  set("RANK", who.rank);
  set("LOCAL_RANK", who.localRank);
  set("WORLD_SIZE", who.worldSize);
  set("LOCAL_WORLD_SIZE", who.localWorldSize);
  set("GROUP_RANK", who.nodeRank);
  set("GROUP_WORLD_SIZE", who.nodes);
  set("NODE_RANK", who.nodeRank);
  set("ROLE_RANK", who.rank);
  set("ROLE_WORLD_SIZE", who.worldSize);
  environment["ROLE_NAME"] = where.role;
  environment["MASTER_ADDR"] = where.address;
  set("MASTER_PORT", where.port);
  set("TORCHELASTIC_RESTART_COUNT", where.restartCount);
  set("TORCHELASTIC_MAX_RESTARTS", where.maxRestarts);
  environment["TORCHELASTIC_RUN_ID"] = where.runId;
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "False";
}

void completeRankVariables(Environment &environment, const RankIdentity &who, const Rendezvous &where) {
  Environment all;
  setRankVariables(all, who, where);
  for (const auto &[name, value] : all)
    if (std::string &there = environment[name]; there.empty())
      there = value;
}

} // namespace devicerun
