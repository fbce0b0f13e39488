import argparse
import random

import numpy as np
import torch

from agents import SAC
from envs import PointMass
from replay import ReplayBuffer


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--cuda", type=lambda s: s.lower() != "false", default=True)
    return p.parse_args()


def evaluate(agent, env, episodes=1):
    returns = []
    for _ in range(episodes):
        obs, done, total = env.reset(), False, 0.0
        while not done:
            obs, reward, done, _ = env.step(agent.act(obs, deterministic=True))
            total += reward
        returns.append(total)
    return np.mean(returns)


def main():
    args = parse()
    random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() and args.cuda else "cpu"
    env = PointMass(args.seed)
    agent = SAC(env, device)
    buffer = ReplayBuffer(env.obs_dim, env.act_dim, 100, device)
    obs = env.reset()
    for step in range(args.steps):
        act = agent.act(obs) if step > 5 else np.random.uniform(-1, 1, env.act_dim).astype(np.float32)
        nxt, rew, done, _ = env.step(act)
        buffer.add(obs=obs, act=act, rew=rew, next_obs=nxt, done=float(done))
        obs = env.reset() if done else nxt
        if step >= 10:
            loss = agent.update(buffer.sample(8))
            if step % 10 == 0:
                print(step, round(loss, 3), evaluate(agent, PointMass(99)))


if __name__ == "__main__":
    main()
