from .c51 import C51
from .dqn import DoubleDQN, DQN
from .sac import DiscreteSAC

AGENTS = {cls.__name__.lower(): cls for cls in (DQN, DoubleDQN, C51, DiscreteSAC)}
