"""A training loop of its own, with accelerate."""

import net
import torch
from accelerate import Accelerator

accelerator = Accelerator()
torch.manual_seed(0)
model = net.make_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, loader = accelerator.prepare(model, optimizer, net.make_loader())
for epoch in range(4):
    total = 0
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        total += accelerator.gather(loss.detach()).mean().item()
    accelerator.print(f"step {epoch}: loss {total / len(loader):.4f}", flush=True)
assert accelerator.num_processes == 2, accelerator.state
assert accelerator.device == torch.device("cuda", accelerator.process_index), accelerator.device
