import torch
import torch.nn as nn

import optimizer_zoo as z

G, H = "cuda:0", "cuda:1"
C = z.ZooConfig()


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3).to(G), nn.Linear(3, 2).to(H)

    def forward(self, x):
        return self.b(self.a(x).relu().to(H))


def backward(model):
    model(torch.rand(5, 4, device=G)).square().mean().backward()
    return model


def small():
    return backward(nn.Linear(4, 3).to(G))


def run(cls, model=None, **kw):
    model = model or small()
    optimizer = cls(model.parameters(), C, **kw)
    for _ in range(2):
        optimizer.step()
    return optimizer


def drive_adam():
    run(z.CorrectedAdam)


def drive_adam_split():
    optimizer = run(z.CorrectedAdam, backward(Split()))
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()


def drive_host_momentum():
    run(z.HostMomentum, backward(Split()))


def drive_host_nesterov():
    run(z.HostNesterov)


def drive_kronecker():
    run(z.KroneckerOptimizer)


def drive_orthogonal():
    run(z.OrthogonalMomentum)


def drive_resilient():
    run(z.ResilientBackprop, backward(Split()))


def drive_langevin():
    run(z.LangevinOptimizer)


def drive_langevin_seeded():
    run(z.LangevinOptimizer, seed=3)


def drive_quantized():
    run(z.QuantizedMomentum)


def drive_quantized_midpoint():
    run(z.QuantizedMomentum, midpoint_rounding=True)


def flat():
    each = z.FlatAdam(small(), C)
    each.step()
    return each


def drive_flat():
    each = flat()
    each.load(each.save())
    each.step()


def drive_flat_exact():
    each = flat()
    each.load(each.save(), exact=True)
    each.step()


def slow():
    each = z.SlowWeights(torch.optim.SGD(backward(Split()).parameters(), lr=0.1))
    for _ in range(4):
        each.step()
    return each


def drive_slow():
    slow()


def drive_slow_distance():
    slow().distance()


def drive_clip_split():
    clipper = z.GradientClipper()
    model = backward(Split())
    clipper.clip(model)
    clipper.flat(model)


def drive_clip_one():
    clipper = z.GradientClipper()
    clipper.squared_norm(small())
    clipper.flat_weights(small())


def drive_squared_norm_split():
    z.GradientClipper().squared_norm(backward(Split()))


def drive_flat_weights_split():
    z.GradientClipper().flat_weights(Split())


def drive_scaler():
    scaler, model = z.LossScaler(), nn.Linear(4, 3).to(G)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.rand(5, 4, device=G)).mean()).backward()
    scaler.update(scaler.unscale(optimizer))


def drive_scaler_all():
    z.LossScaler().scale_all({"a": torch.rand((), device=G)})


def drive_compress():
    compressor, grad = z.TopKCompressor(), torch.rand(4, 3, device=G)
    for _ in range(2):
        compressor.decompress(compressor.compress("w", grad), torch.rand(4, 3, device=H))


def drive_compress_accumulate():
    compressor, grad = z.TopKCompressor(), torch.rand(4, 3, device=G)
    compressor.accumulate([compressor.compress("w", grad)], grad)


def losses():
    return {"a": torch.rand((), device=G), "b": torch.rand((), device=G)}


def drive_balance_first():
    balancer = z.TaskBalancer(["a", "b"])
    balancer.weights(losses())
    balancer.uniform(losses())


def drive_balance_second():
    balancer = z.TaskBalancer(["a", "b"])
    for _ in range(2):
        balancer.weights(losses())


def memory():
    each = z.LimitedMemory(C)
    for _ in range(3):
        step = torch.rand(5, device=G)
        each.push(step, 2 * step)
    return each


def drive_memory():
    memory().direction(torch.rand(5, device=G))


def drive_memory_scaled():
    memory().scaled_steps()


def solver():
    a = torch.rand(6, 3, device=G)
    return z.LeastSquaresSolver(lambda x: (a @ x).sin() - 0.3, C)


def drive_solver():
    solver().iterate(torch.rand(3, device=G))


def drive_solver_direct():
    solver().direct(torch.rand(3, device=G))
