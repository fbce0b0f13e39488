import argparse

import torch
from schedule import Schedule

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
Schedule(10).at(torch.ones(3, device=args.device))
