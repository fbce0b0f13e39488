"""ZeRO stage 3 with the optimizer on the CPU."""

import deepspeed
import net
import torch

CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
    "zero_force_ds_cpu_optimizer": False,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "torch_adam": True}},
}

deepspeed.init_distributed()
torch.manual_seed(0)
engine, *_ = deepspeed.initialize(model=net.make_model(), config=CONFIG)
for epoch in range(4):
    total = torch.zeros((), device=engine.device)
    for inputs, labels in net.make_loader():
        loss = torch.nn.functional.cross_entropy(engine(inputs.to(engine.device)), labels.to(engine.device))
        engine.backward(loss)
        engine.step()
        total += loss.detach() / 8
    if engine.global_rank == 0:
        print(f"step {epoch}: loss {total.item():.4f}", flush=True)
assert engine.world_size == 2
assert engine.device == torch.device("cuda", engine.local_rank), engine.device
