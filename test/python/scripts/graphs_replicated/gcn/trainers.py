"""One device, or a replica per device on graphs of its own."""
import copy

import torch
import torch.nn.functional as F


class Single:
    def __init__(self, model, graph, device, lr, balanced=False):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.graph = graph.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr, weight_decay=5e-4)
        self.weight = None
        if balanced:
            counts = torch.bincount(graph.labels[graph.train]).float()
            self.weight = (counts.sum() / counts.clamp(min=1)).to(self.device)

    def loss(self, model, graph):
        logits = model(graph)[graph.train]
        weight = None if self.weight is None else self.weight.to(logits.device)
        return F.cross_entropy(logits, graph.labels[graph.train], weight=weight)

    def step(self):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.model, self.graph)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def predict(self):
        return self.model.eval()(self.graph)

    def accuracy(self, logits=None):
        logits = self.predict() if logits is None else logits
        right = logits.argmax(1) == self.graph.labels.to(logits.device)
        return right[self.graph.test.cpu()].float().mean().item()


class Replicated(Single):
    def __init__(self, model, graph, devices, lr, balanced=False):
        super().__init__(model, graph, devices[0], lr, balanced)
        self.replicas = [self.model, *(copy.deepcopy(self.model).to(d) for d in devices[1:])]
        self.graphs = [graph.to(d) for d in devices]

    def step(self):
        losses = []
        for replica, graph in zip(self.replicas, self.graphs):
            replica.train().zero_grad()
            loss = self.loss(replica, graph)
            loss.backward()
            losses.append(loss.detach().to(self.device))
        with torch.no_grad():
            for main, *others in zip(*(replica.parameters() for replica in self.replicas)):
                for other in others:
                    main.grad += other.grad.to(main.device)
                main.grad /= len(self.replicas)
        self.optimizer.step()
        for replica in self.replicas[1:]:
            replica.load_state_dict(self.model.state_dict())
        return torch.stack(losses).mean().item()
