#include "checks/DeviceUnregisteredTensor.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/report/finding/Glob.h"
#include "checks/ConflictFinding.h"

#include <algorithm>

namespace devicetidy {

void DeviceUnregisteredTensor::run(const Solution &solution, const CheckContext &context,
                                   std::vector<Finding> &findings) const {
  for (const UnregisteredMember &member : solution.unregisteredMembers) {
    if (matchesGlobIn(context.option(name(), member.conflict.where.file, "IgnoredMembers"),
                      withoutPath(member.className) + "::" + member.member))
      continue;
    Finding finding = conflictFinding(name(), member.conflict);
    finding.fields = {{"member", member.member},
                      {"class", member.className},
                      {"kind", member.isModule ? "submodule" : "tensor"}};
    // The member is named once, with its declaration.
    for (PlacedOperand &operand : finding.operands)
      operand.history.erase(std::remove_if(operand.history.begin(), operand.history.end(),
                                           [](const Step &step) { return step.kind == StepKind::Member; }),
                            operand.history.end());
    finding.related = {{"declared", member.declared}, {"moved", member.moved}};
    finding.fix = std::string(member.isModule ? "register_module" : "register_buffer") + "(\"" +
                  member.member + "\", " + member.member + ")";
    finding.fixAt = member.created.valid() ? member.created : member.declared;
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
