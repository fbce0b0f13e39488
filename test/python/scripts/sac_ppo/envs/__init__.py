from envs.point import PointEnv, VectorEnv

REGISTRY = {"point": lambda seed: PointEnv(seed), "point-long": lambda seed: PointEnv(seed, horizon=30)}


def make(name, count=1, seed=0):
    return VectorEnv([REGISTRY[name](seed + i) for i in range(count)])
