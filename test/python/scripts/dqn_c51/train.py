"""DQN and its extensions on a chain: python train.py --prioritized --noisy ..."""
import argparse
import random

import torch

from agent import Agent
from nets import QNet
from replay import PrioritizedReplay, Replay


class Chain:
    """Walk right to the end for a reward; left gives a little at once."""

    def __init__(self, length=6):
        self.length = length

    @property
    def obs_dim(self):
        return self.length

    def _obs(self):
        return torch.eye(self.length)[self.position]

    def reset(self):
        self.position, self.clock = 0, 0
        return self._obs()

    def step(self, action):
        self.clock += 1
        if action == 1:
            self.position += 1
        else:
            self.position = 0
        end = self.position == self.length - 1
        reward = 1.0 if end else (0.01 if action == 0 else 0.0)
        return self._obs(), reward, end or self.clock >= 12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--n-step", type=int, default=1)
    parser.add_argument("--prioritized", action="store_true")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--atoms", type=int, default=1)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)

    use_cuda = torch.cuda.is_available() and not args.cpu
    device = torch.device("cuda:0" if use_cuda else "cpu")
    env = Chain()
    memory = PrioritizedReplay if args.prioritized else Replay
    replay = memory(64, env.obs_dim, n_step=args.n_step)
    agent = Agent(QNet(env.obs_dim, 2, noisy=args.noisy, atoms=args.atoms), device, n_step=args.n_step)

    obs, losses, episode, returns = env.reset(), [], 0.0, []
    for frame in range(args.frames):
        epsilon = 0.0 if args.noisy and frame > args.warmup else max(0.1, 1 - frame / args.frames)
        action = agent.act(obs, epsilon) if frame >= args.warmup else random.randrange(2)
        next_obs, reward, done = env.step(action)
        replay.add(obs, action, reward, next_obs, done)
        episode += reward
        obs = next_obs
        if done:
            returns.append(episode)
            obs, episode = env.reset(), 0.0
        if frame >= args.warmup and frame % 4 == 0:
            losses.append(agent.learn(replay, args.batch))
    mean = sum(losses) / max(1, len(losses))
    print(f"{len(losses)} updates, loss {mean:.4f}, returns {[round(r, 2) for r in returns]}")


if __name__ == "__main__":
    main()
