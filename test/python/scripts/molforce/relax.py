import torch


class Relaxer:
    """Steepest descent with momentum, and no atom further than `most` in a step."""

    def __init__(self, model, rate=0.02, most=0.1):
        self.model, self.rate, self.most = model, rate, most

    def run(self, graph, steps):
        velocity = torch.zeros(graph.positions.shape)
        trace = []
        for _ in range(steps):
            energy, force = self.model.energy_and_force(graph, training=False)
            velocity = 0.8 * velocity + self.rate * force.cpu()
            move = velocity * (self.most / velocity.norm(dim=1, keepdim=True).clamp(min=self.most))
            graph.positions = graph.positions.detach() + move.to(force)
            trace.append(energy.detach())
        return torch.stack(trace).cpu()
