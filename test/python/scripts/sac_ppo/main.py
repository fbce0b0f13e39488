import argparse

import torch

import envs
from agents.ppo import PPO
from agents.sac import SAC


def parse():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="algo", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--env", default="point", choices=sorted(envs.REGISTRY))
    shared.add_argument("--updates", type=int, default=2)
    shared.add_argument("--steps", type=int, default=6)
    shared.add_argument("--lr", type=float, default=3e-3)
    shared.add_argument("--gpu", type=int, default=0)
    ppo = commands.add_parser("ppo", parents=[shared])
    ppo.add_argument("--norm-obs", action="store_true")
    ppo.add_argument("--gae-on-cpu", action="store_true")
    sac = commands.add_parser("sac", parents=[shared])
    sac.add_argument("--prioritized", action="store_true")
    sac.add_argument("--rescale", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    device = torch.device(f"cuda:{args.gpu}" if args.gpu >= 0 and torch.cuda.is_available() else "cpu")
    agent = {"ppo": PPO, "sac": SAC}[args.algo](envs.make(args.env, count=2), device, vars(args))
    for update in range(args.updates):
        stats = agent.update()
        print(update, " ".join(f"{k}={v:.3f}" for k, v in stats.items()))


if __name__ == "__main__":
    main()
