//===- Environment.h - the variables a rank is started with -----*- C++ -*-===//
//
// The environment as a map, and the variables that every rank gets.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <map>
#include <string>
#include <vector>

namespace devicerun {

using Environment = std::map<std::string, std::string>;

/// The variables of this process.
Environment currentEnvironment();

/// "NAME=value" for exec.
std::vector<std::string> toStrings(const Environment &environment);

/// Who a rank is within its job.
struct RankIdentity {
  int rank = 0;
  int localRank = 0;
  int worldSize = 1;
  int localWorldSize = 1;
  int nodeRank = 0;
  int nodes = 1;
};

/// What all ranks of one attempt share.
struct Rendezvous {
  std::string address = "127.0.0.1";
  int port = 0;
  std::string runId;
  int restartCount = 0;
  int maxRestarts = 0;
  std::string role = "default";
};

/// Sets the variables torchrun sets, as documented in torch/distributed/run.py ("Environment Variables") and
/// set by torch/distributed/elastic/agent/server/local_elastic_agent.py, plus NODE_RANK. The store is held by
/// rank 0, not by the launcher, so TORCHELASTIC_USE_AGENT_STORE is False.
void setRankVariables(Environment &environment, const RankIdentity &who, const Rendezvous &where);

/// The same, but variables that are set stay unchanged: a torchrun around us knows its job, its roles and its
/// store.
void completeRankVariables(Environment &environment, const RankIdentity &who, const Rendezvous &where);

} // namespace devicerun
