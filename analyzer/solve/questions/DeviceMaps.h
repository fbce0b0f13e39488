//===- DeviceMaps.h - placement maps that meet distributed training -*- C++ -*-===//
//
// Watches every call the interpreter makes: which one gets a spread device_map, which one initialises
// distributed training, and which one moves a layer over all devices of the machine. Both marks live in the
// row, so that a map that is set only when there is one process never meets the process group of the others.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/questions/Loaders.h"

#include <map>
#include <optional>
#include <set>

namespace devicetidy {

class DeviceMaps : public CallObserver {
public:
  explicit DeviceMaps(Machine &machine);

  /// Can the program initialise distributed training at all? Nothing is to be watched where it cannot.
  bool isNeeded() const { return isEnabled; }
  /// Notes what the call does, and that whatever happens inside happens on behalf of its map.
  void enter(Call &call) override;
  void leave() override { active.pop_back(); }

  std::vector<MapUnderDistributed> findings() const;

private:
  struct Carried {
    std::string map; ///< "auto", "{3 entries}"
  };
  /// A call on the stack.
  struct Active {
    bool carriesMap = false;
    LoaderKind kind = LoaderKind::None;
    Name callee;
  };
  struct Candidate {
    MapUnderDistributed finding;
    LoaderKind kind = LoaderKind::None;
    Name callee;
    bool isPlacement = false;           ///< layers moved over the devices, no option
    bool isLiteral = false;             ///< by device numbers written out
    bool isLate = false;                ///< by a program whose calls do not show what they lead to
    std::string initialiser;            ///< key of the initialisation it met in one row, or empty
    std::vector<std::set<Name>> stacks; ///< functions active when it was met
  };
  struct Initialisation {
    std::string name;
    Location where;
  };

  void noteOrigin(const Call &call);
  void noteSetter(Call &call);
  void noteInitialisation(Call &call, const std::string &name);
  void noteMap(Call &call, const std::string &map, LoaderKind kind);
  void noteMove(Call &call);
  Candidate &candidateAt(Call &call);
  void meet(Call &call, Candidate &candidate);
  std::optional<std::string> carriedBy(const Call &call, LoaderKind kind) const;
  std::optional<std::string> mapIn(const Call &call, const Value &value, int depth) const;
  std::optional<std::string> spreadOf(const Call &call, const Value &value, int depth) const;
  bool differsByEntry(const Call &call, const Value &value) const;
  std::set<Name> functionsThatInitialise() const;
  bool isReported(const Candidate &candidate, const std::set<Name> &initialisers) const;

  Machine &machine;
  Loaders loaders;
  bool isEnabled = false;
  std::optional<Initialisation> launcher; ///< the command that starts the program once for each rank
  std::vector<Active> active;
  std::map<Location, Candidate> candidates;
  std::map<std::string, Initialisation> initialisations;
  std::set<Name> initialising;         ///< functions with an initialisation of their own
  std::set<Name> aroundLoaders;        ///< functions that a sure loader was reached in
  std::map<std::string, Step> origins; ///< map text -> where it was put under such a key last
  std::map<Location, std::set<Term>> movedTo;
  struct LiteralMove {
    Location where;
    Term index;
    Address module;
  };
  std::map<Name, std::vector<LiteralMove>> literalMoves; ///< by function
};

} // namespace devicetidy
