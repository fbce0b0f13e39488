#!/usr/bin/env python
import argparse

import numpy as np
import torch

import globals as G
from agents import AGENTS
from buffers import make_buffer
from envs import FrameStack, PointMass
from stats import Normalizer, RewardScaler


def evaluate(agent, make_env, normalizer, episodes=1):
    total = []
    for _ in range(episodes):
        env = make_env()
        obs, done, ret = env.reset(), False, 0.0
        while not done:
            act = agent.act(prepare(obs, normalizer), explore=False)
            obs, rew, done = env.step(act)
            ret += rew
        total.append(ret)
    return float(np.mean(total))


def prepare(obs, normalizer):
    x = torch.as_tensor(obs, dtype=torch.float32).to(G.DEVICE).unsqueeze(0)
    return normalizer(x) if normalizer is not None else x


def run(args):
    make_env = lambda: FrameStack(PointMass(args.seed, horizon=args.horizon), k=args.stack)
    env = make_env()
    agent = AGENTS[args.agent](env.obs_dim, env.n_actions, args)
    buffer = make_buffer(args)
    normalizer = Normalizer(env.obs_dim, args.norm_device or str(G.DEVICE)) if args.norm_obs else None
    scaler = RewardScaler() if args.scale_reward else None

    obs = env.reset()
    for t in range(args.steps):
        if t < args.warmup:
            action = np.random.randint(env.n_actions)
        else:
            action = agent.act(prepare(obs, normalizer), explore=True)
        nxt, reward, done = env.step(action)
        if scaler is not None:
            reward = scaler(reward)
        buffer.add(obs, action, reward, nxt, float(done))
        if normalizer is not None:
            normalizer.observe(torch.as_tensor(nxt, dtype=torch.float32))
        obs = env.reset() if done else nxt
        if t >= args.warmup:
            batch = buffer.sample(args.batch_size)
            if normalizer is not None:
                batch = batch._replace(obs=normalizer(batch.obs), next_obs=normalizer(batch.next_obs))
            info = agent.learn(batch)
            if args.buffer == 'per':
                buffer.update_priorities(batch.index, info['priority'])
    print('loss %.4f return %.3f' % (info['loss'], evaluate(agent, make_env, normalizer)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--agent', default='dqn', choices=sorted(AGENTS))
    p.add_argument('--buffer', default='uniform', choices=['uniform', 'per', 'gpu'])
    p.add_argument('--steps', type=int, default=24)
    p.add_argument('--warmup', type=int, default=12)
    p.add_argument('--horizon', type=int, default=9)
    p.add_argument('--stack', type=int, default=2)
    p.add_argument('--batch-size', type=int, default=6)
    p.add_argument('--capacity', type=int, default=32)
    p.add_argument('--gamma', type=float, default=0.97)
    p.add_argument('--lr', type=float, default=3e-3)
    p.add_argument('--tau', type=float, default=0.05)
    p.add_argument('--atoms', type=int, default=11)
    p.add_argument('--alpha', type=float, default=0.2)
    p.add_argument('--auto-alpha', action='store_true')
    p.add_argument('--huber', action='store_true')
    p.add_argument('--norm-obs', action='store_true')
    p.add_argument('--norm-device', default='')
    p.add_argument('--scale-reward', action='store_true')
    p.add_argument('--cuda', type=int, default=0, help='-1 is the CPU')
    p.add_argument('--seed', type=int, default=0)
    args = p.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    G.set_device(args.cuda)
    run(args)


if __name__ == '__main__':
    main()
