import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
judge = AutoModelForCausalLM.from_pretrained("model", device_map="auto")
net = accelerator.prepare(torch.nn.Linear(2, 2))
print(judge, net)
