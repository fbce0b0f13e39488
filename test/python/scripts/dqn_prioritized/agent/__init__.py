from .dqn import Agent
from .env import Corridor
from .replay import PrioritizedReplay, Replay
