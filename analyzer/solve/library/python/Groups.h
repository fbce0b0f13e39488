//===- Groups.h - process groups, and what they exchange --------*- C++ -*-===//
//
// The backend of a process group decides which tensors ranks can exchange: NCCL takes those on GPUs. A row
// remembers how the ranks were joined. Functions of torch.distributed are models in Python
// (bodies/python/torch_distributed.py); what these ask as dt.name(..) is here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// torch.distributed.init_process_group(backend, ..), which the row remembers.
Outcomes initProcessGroup(Call &call, Row &row, const Given &given);
/// torch.distributed.Backend.NCCL is a text; nothing for another name.
std::optional<Value> backendNamed(const std::string &dotted);

/// Has something joined the ranks on the way, or asked which one this is?
bool areRanksJoined(const Call &call, const Row &row);

/// join(backend): a framework joins the ranks, where it is started for several.
Value joinRanks(Call &call, Row &row, const Given &given);
/// leave(): the ranks are no longer joined.
Value leaveRanks(Call &call, Row &row, const Given &given);
/// joined(): whether the ranks are; where nothing has joined them, one answer holds for the whole way.
Value areJoined(Call &call, Row &row, const Given &given);
/// backend(): what the ranks were joined with.
Value backendOfRanks(Call &call, Row &row, const Given &given);
/// exchange(group, tensors..): the ranks exchange them. `group` is None, or has a backend of its own.
Value exchangeTensors(Call &call, Row &row, const Given &given);
/// on_gpus(ids): ranks meet on these GPUs; None: on the one that is current.
Value meetOnGpus(Call &call, Row &row, const Given &given);
/// own_gpu(): a library has made the GPU of the rank current.
Value takeOwnGpu(Call &call, Row &row, const Given &given);
/// rank(variable): what the variable tells each rank.
Value rankIn(Call &call, Row &row, const Given &given);

} // namespace devicetidy::python
