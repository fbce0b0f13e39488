"""DQN on a corridor.

    python main.py --double --prioritized
"""
import argparse
import random
import statistics

import torch

from agent import Agent, Corridor, PrioritizedReplay, Replay


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--capacity", type=int, default=500)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--tau", type=float, default=0.05)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--prioritized", action="store_true")
    parser.add_argument("--normalize", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--gpu", type=int, default=0)
    return parser.parse_args()


def evaluate(agent, episodes=3):
    env = Corridor(seed=99)
    returns = []
    for _ in range(episodes):
        state, finished, total = env.reset(), False, 0.0
        while not finished:
            state, reward, done, late = env.step(agent.act(state))
            finished = done or late
            total += reward
        returns.append(total)
    return statistics.mean(returns)


def run(env, agent, memory, args):
    state = env.reset()
    losses, seen = [], []
    for step in range(args.steps):
        epsilon = max(0.1, 1 - step / args.steps)
        action = agent.act(state, epsilon)
        following, reward, done, late = env.step(action)
        memory.push(state, action, reward, following, done)
        seen.append(torch.from_numpy(state))
        state = env.reset() if done or late else following
        if agent.normalizer is not None and len(seen) == 16:
            agent.normalizer.update(torch.stack(seen))
            seen.clear()
        if len(memory) >= args.warmup:
            batch = memory.sample(args.batch_size)
            loss, errors = agent.learn(batch)
            memory.update(batch.index, errors)
            agent.synchronise(args.tau)
            losses.append(loss)
    return losses


def main():
    args = arguments()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    use_cuda = torch.cuda.is_available() and not args.no_cuda
    device = torch.device("cuda", args.gpu) if use_cuda else torch.device("cpu")
    env = Corridor(seed=args.seed)
    agent = Agent(env, args, device)
    kind = PrioritizedReplay if args.prioritized else Replay
    memory = kind(args.capacity, device, args.seed)
    losses = run(env, agent, memory, args)
    print(f"{len(losses)} updates, loss {statistics.mean(losses[-20:]):.4f}, return {evaluate(agent):.2f}")


if __name__ == "__main__":
    main()
