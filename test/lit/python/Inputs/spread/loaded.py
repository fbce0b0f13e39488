import torch
from models import Behind, Brought

for model in (Brought.from_pretrained("name", device_map="auto"), Behind.from_pretrained("name", device_map={"": 0})):
    model(torch.zeros(2, 4, device="cuda:0"), torch.zeros(2, 4, device="cuda:0"), torch.zeros(2, device="cuda:0"))
