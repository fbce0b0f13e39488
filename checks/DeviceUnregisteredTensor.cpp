#include "checks/DeviceUnregisteredTensor.h"

namespace devicetidy {

void DeviceUnregisteredTensor::run(const Solution &solution, const CheckContext &,
                                   std::vector<Finding> &findings) const {
  for (const UnregisteredMember &member : solution.unregisteredMembers) {
    Finding finding;
    finding.check = name();
    finding.level = member.level;
    // The line to change is the one that makes the member; the operation that fails is told as a note.
    finding.where = member.created.valid() ? member.created : member.declared;
    finding.operation = member.operation;
    finding.fields = {{"member", member.member},
                      {"class", member.className},
                      {"kind", member.isModule ? "submodule" : "tensor"},
                      {"device", member.device}};
    finding.fix = std::string(member.isModule ? "register_module" : "register_buffer") + "(\"" +
                  member.member + "\", " + member.member + ")";
    finding.related = {{"declared", member.declared}, {"moved", member.moved}, {"used", member.used}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
