#include "checks/DeviceDanglingData.h"

namespace devicetidy {

void DeviceDanglingData::run(const Solution &solution, const CheckContext &,
                             std::vector<Finding> &findings) const {
  for (const DanglingData &data : solution.danglingData) {
    Finding finding;
    finding.check = name();
    finding.level = data.level;
    finding.where = data.where;
    finding.fields = {{"tensor", data.tensor}, {"pointer", data.pointer}};
    finding.related = {{"keep", data.where, true}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
