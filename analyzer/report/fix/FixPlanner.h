//===- FixPlanner.h - changes that repair findings --------------*- C++ -*-===//
//
// A fix is planned only where the text says the same as the facts: every range is read again and compared,
// and code that the preprocessor writes, third-party files and anything but plain expressions are not
// changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"
#include "analyzer/report/fix/Fix.h"
#include "analyzer/report/source/ExpressionText.h"
#include "analyzer/report/source/Source.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace devicetidy {

/// Adds the names of the macros that are defined in `source` to `names`.
void collectMacros(std::string_view source, std::set<std::string, std::less<>> &names);

class FixPlanner {
public:
  /// `mayChange` says which files fixes may touch; `macros` are the macros of the project (collectMacros).
  FixPlanner(SourceCache &sources, std::function<bool(const std::string &)> mayChange,
             std::set<std::string, std::less<>> macros)
      : sources(sources), mayChange(std::move(mayChange)), macros(std::move(macros)) {}

  /// The change that repairs `finding`, or nothing when none is certain to be right.
  std::optional<Fix> plan(const Finding &finding);

private:
  /// An expression of the source: where it is, what it says, its tokens.
  struct Piece {
    Location where;
    std::size_t begin = 0, end = 0;
    std::string_view text;
    TokenRange tokens;
    TokenRange file; ///< all tokens of the file
  };

  /// The expression at `where`, when it can be changed and its text begins like `expected` (facts keep only
  /// the beginning of long texts; empty: any text).
  std::optional<Piece> read(const Location &where, const std::string &expected);
  std::optional<Piece> readPart(Name file, std::size_t begin, std::size_t end);
  std::optional<Piece> partOf(const Piece &piece, TokenRange tokens);
  TokenRange tokensOf(Name file);
  bool isMacro(std::string_view name) const;
  /// Does `->` follow? Facts know the object behind it, the text names a pointer or a holder.
  static bool isPointer(const Piece &piece) {
    return piece.tokens.last != piece.file.last && piece.tokens.last->text == "->";
  }
  Fix makeFix(const Piece &piece, std::string text, std::string description);

  // FixOperand.cpp: the tensor that has to move.
  /// What to write for the device of the tensor that stays.
  struct Target {
    std::string device; ///< empty when nothing is certain
    std::string
        tensor; ///< the tensor whose device `device` is; valid where the tensor is as at the operation
    std::string options; ///< all options of `tensor`, where only the device can differ from the defaults
  };
  std::optional<Fix> planMove(const Finding &finding);
  std::optional<Fix> planOperandMove(const Finding &finding);
  /// Where `operand` is written: itself, or the element of a braced list that is the operand of the
  /// operation.
  std::optional<Piece> operandPiece(const Finding &finding, const PlacedOperand &operand);
  /// Is the expression a tensor in every instantiation?
  static bool isTensor(const Finding &finding, const Piece &piece);
  /// The operand that stays, or the module whose parameters it is.
  std::optional<Piece> keptPiece(const Finding &finding);
  /// Does the code that put `kept` on its device name that device? In a program that chooses its device,
  /// naming one of them would be a mistake.
  bool saysDevice(const PlacedOperand &kept);
  /// Is `piece`, which is `kept`, what made the tensor?
  bool isMadeHere(const PlacedOperand &kept, const Piece &piece);
  Target targetOf(const Finding &finding, const Piece &keep, const Piece &moved);
  /// The variable or member of the function at `site` that `kept` was put on its device with; empty when none
  /// is certain to say so at `before`.
  std::string deviceVariable(const PlacedOperand &kept, const CodeSite &site, const Location &before);

  // FixFactory.cpp: the tensor that a factory can make in the right place.
  bool hasDefaultOptions(const Finding &finding, const Piece &tensor, const Token *operation);
  std::optional<Fix> planFactory(const Finding &finding, const Piece &moved, const Target &target);
  std::optional<Piece> soleFactoryOf(const Finding &finding, const Piece &moved);
  std::optional<Piece> initialiserOf(const Variable &variable);
  static bool isFactory(TokenRange expression);
  /// `torch::zeros({3})`, without options
  static bool isDefaultFactory(TokenRange expression);
  std::optional<Fix> changeFactory(const Piece &factory, const Target &target,
                                   const std::string &description);
  std::optional<Fix> planCreation(const Finding &finding);
  static bool isOnlyPassed(const Piece &call, const Finding &finding);

  // FixArgument.cpp: factory calls that are written for the operation, in what it is given.
  std::optional<Fix> planArgument(const Finding &finding);
  /// Is what the factory call makes given to the operation and to nothing else, maybe in a variable or list?
  bool isMadeFor(const Piece &call, const Piece &operation, const Target &target, const Finding &finding);
  TokenRange keptIn(const Piece &call, TokenRange made, const Finding &finding);

  // FixPython.cpp: the same in Python.
  std::optional<Fix> planPython(const Finding &finding);
  std::optional<Fix> fixPython(const Location &where, const std::string &text, std::string change,
                               std::string description);

  // FixStatement.cpp: a move whose result is lost, a member that is not registered.
  std::optional<Fix> planKeep(const Finding &finding);
  std::optional<Fix> planRegister(const Finding &finding);

  // FixModule.cpp: a model that nobody moved, or that got a part after it was moved.
  /// The statement `net->to(device);`.
  struct ModuleMove {
    Piece object;
    Piece call;         ///< `to(device)`
    const Token *first; ///< of the statement
    const Token *end;   ///< its `;`
  };
  std::optional<Fix> planModuleMove(const Finding &finding);
  std::optional<Fix> planMoveAtDeclaration(const Finding &finding, const UsedModule &used);
  std::optional<Fix> planMoveBeside(const Finding &finding, const UsedModule &used);
  std::optional<Fix> planMoveAgain(const Finding &finding, const Step &registered);
  std::optional<ModuleMove> moveOf(const Finding &finding);
  std::optional<ModuleMove> moveAt(const Piece &call);
  /// The move of the object of the call `registering`, or of what has that as a part, before it.
  std::optional<ModuleMove> moveBefore(const Piece &registering);
  /// Puts a statement behind the one that ends with `end`, in the file of `piece`.
  std::optional<Fix> putBehind(const Piece &piece, const Token *end, const std::string &statement,
                               std::string description);

  SourceCache &sources;
  std::function<bool(const std::string &)> mayChange;
  std::set<std::string, std::less<>> macros;
  std::map<Name, std::vector<Token>> tokens;
};

} // namespace devicetidy
