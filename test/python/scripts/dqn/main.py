import argparse

import torch

from agent import Agent
from env import Corridor


def run_episode(env, agent, learn=True):
    obs, done, total, losses = env.reset(), False, 0.0, []
    while not done:
        action = agent.act(obs)
        next_obs, reward, done = env.step(action)
        agent.memory.push(obs, action, reward, next_obs, done)
        obs, total = next_obs, total + reward
        if learn:
            loss = agent.learn()
            if loss is not None:
                losses.append(loss)
    return total, sum(losses) / max(1, len(losses))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=2)
    parser.add_argument("--capacity", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--gamma", type=float, default=0.9)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() and not args.no_cuda else "cpu")
    torch.manual_seed(0)
    env = Corridor()
    agent = Agent(3, env.actions, args, device)
    run_episode(env, agent, learn=False)
    for episode in range(args.episodes):
        total, loss = run_episode(env, agent)
        print(f"episode {episode}: return {total:.2f}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
