"""A small classifier: each option meets a mistake of its own, or none."""
import io

import torch
import torch.nn.functional as F
from net.config import from_command_line
from net.layers import Net
from net.score import frequency, loss_by_class, terms_of


class Average:
    def __init__(self, model):
        self.kept = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.kept[name].mul_(0.9).add_(p, alpha=0.1)  # raises

    def load_state_dict(self, state):
        self.kept = state


def saved(average):
    stored = io.BytesIO()
    torch.save(average.kept, stored)
    stored.seek(0)
    return stored


def main():
    config, head, seed = from_command_line()
    torch.manual_seed(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    samples = [(torch.randn(5, config.layers.width), torch.randint(0, 3, (5,))) for _ in range(2)]
    print("classes", frequency(samples, 3).tolist())
    model = Net(config.layers, head).to(device)
    average = Average(model)
    if config.resume:
        average.load_state_dict(torch.load(saved(average), map_location="cpu"))
    optimizer = torch.optim.SGD(model.groups(), lr=0.1)
    terms = terms_of(config, 3)
    for _ in range(config.steps):
        for x, y in samples:
            x, y = x.to(device), y.to(device)
            x.to(device)
            logits = model(x)
            losses = F.cross_entropy(logits, y, reduction="none")
            loss = losses.mean()
            for term in terms:
                loss = loss + term(logits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            if config.by_class:
                print(loss_by_class(losses, y, 3).tolist())


if __name__ == "__main__":
    main()
