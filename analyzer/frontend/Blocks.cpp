//===- Blocks.cpp - the block graph of a function under construction ------===//
#include "analyzer/frontend/FunctionLowering.h"

#include <algorithm>

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

// Registers are numbered from 0 in every full expression, so that their number does not grow with the
// function.
Reg FunctionLowering::freshRegister() {
  function.registerCount = std::max(function.registerCount, nextRegister + 1);
  return nextRegister++;
}

Reg FunctionLowering::result(Fact &fact) { return fact.result = freshRegister(); }

namespace {

/// The reachable blocks in reverse postorder: a block comes after what leads to it, back edges apart.
std::vector<BlockId> orderedBlocks(const std::vector<Block> &blocks) {
  struct Visit {
    BlockId block;
    std::size_t next; ///< 0: the handler, then the successors from the last to the first
  };
  std::vector<BlockId> order;
  std::vector<bool> seen(blocks.size(), false);
  std::vector<Visit> path{{0, 0}};
  seen[0] = true;
  while (!path.empty()) {
    Visit &top = path.back();
    const Block &block = blocks[top.block];
    const std::vector<BlockId> &successors = block.terminator.successors;
    if (top.next > successors.size()) {
      order.push_back(top.block);
      path.pop_back();
      continue;
    }
    BlockId next = top.next == 0 ? block.handler : successors[successors.size() - top.next];
    ++top.next;
    if (next >= 0 && !seen[next]) {
      seen[next] = true;
      path.push_back({next, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
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
  std::vector<BlockId> renumbered(function.blocks.size(), -1);
  std::vector<Block> kept;
  for (BlockId id : orderedBlocks(function.blocks)) {
    renumbered[id] = static_cast<BlockId>(kept.size());
    kept.push_back(std::move(function.blocks[id]));
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
