//===- Blocks.cpp - the block graph of a function under construction ------===//
#include "analyzer/frontend/FunctionLowering.h"

namespace devicetidy::frontend {

BlockId FunctionLowering::newBlock() {
  Block block;
  block.handler = handler;
  function.blocks.push_back(std::move(block));
  return static_cast<BlockId>(function.blocks.size()) - 1;
}

void FunctionLowering::terminate(Terminator terminator) {
  if (!isOpen())
    return;
  function.blocks[current].terminator = std::move(terminator);
  current = -1;
}

void FunctionLowering::jump(BlockId target) {
  Terminator terminator;
  terminator.kind = TerminatorKind::Jump;
  terminator.successors = {target};
  terminate(std::move(terminator));
}

void FunctionLowering::branch(Operand condition, BlockId whenTrue, BlockId whenFalse, bool entersLoop) {
  Terminator terminator;
  terminator.kind = TerminatorKind::Branch;
  terminator.where = condition.where;
  terminator.value = std::move(condition);
  terminator.successors = {whenTrue, whenFalse};
  terminator.entersLoop = entersLoop;
  terminate(std::move(terminator));
}

void FunctionLowering::branchEitherWay(BlockId first, BlockId second) { branch({}, first, second, false); }

void FunctionLowering::unreachable() { terminate({}); }

Fact &FunctionLowering::append(FactKind kind) {
  // Code after a return or a throw is lowered into a block without predecessors, which finish() removes.
  if (!isOpen())
    continueIn(newBlock());
  std::vector<Fact> &facts = function.blocks[current].facts;
  facts.emplace_back();
  facts.back().kind = kind;
  return facts.back();
}

Reg FunctionLowering::result(Fact &fact) { return fact.result = function.registerCount++; }

namespace {

std::vector<bool> reachableBlocks(const std::vector<Block> &blocks) {
  std::vector<bool> reached(blocks.size(), false);
  std::vector<BlockId> work{0};
  auto reach = [&](BlockId id) {
    if (id >= 0 && !reached[id]) {
      reached[id] = true;
      work.push_back(id);
    }
  };
  reached[0] = true;
  while (!work.empty()) {
    const Block &block = blocks[work.back()];
    work.pop_back();
    reach(block.handler);
    for (BlockId successor : block.terminator.successors)
      reach(successor);
  }
  return reached;
}

} // namespace

void FunctionLowering::finish() {
  if (isOpen()) {
    Terminator terminator;
    bool returnsNothing = !decl || decl->getReturnType()->isVoidType() || decl->isMain() ||
                          llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl>(decl);
    // Flowing off the end of a function that returns something is not a way to return.
    terminator.kind = returnsNothing ? TerminatorKind::Return : TerminatorKind::Unreachable;
    terminate(std::move(terminator));
  }
  std::vector<bool> reached = reachableBlocks(function.blocks);
  std::vector<BlockId> renumbered(function.blocks.size(), -1);
  std::vector<Block> kept;
  for (std::size_t i = 0; i < function.blocks.size(); ++i) {
    if (!reached[i])
      continue;
    renumbered[i] = static_cast<BlockId>(kept.size());
    kept.push_back(std::move(function.blocks[i]));
  }
  for (Block &block : kept) {
    if (block.handler >= 0)
      block.handler = renumbered[block.handler];
    for (BlockId &successor : block.terminator.successors)
      successor = renumbered[successor];
  }
  function.blocks = std::move(kept);
  function.hasBody = true;
}

} // namespace devicetidy::frontend
