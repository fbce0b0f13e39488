from offpolicy_agents import *


def filled(cls=ReplayBuffer):
    buf = cls(3, 1, 10, device="cuda")
    for _ in range(6):
        buf.add(np.ones(3), 1, 0.5, np.ones(3), 0.0)
    return buf


def drive_buffer():
    b = filled().sample(4)
    b.obs + b.next_obs


def drive_td():
    DQNAgent(3, 2, "cuda").td_loss(filled().sample(4))


def drive_prio():
    buf = filled(PrioritizedBuffer)
    b, idx, w = buf.sample(4)
    buf.set_priority(idx, w * b.rew.squeeze(-1))


def drive_prio_update():
    buf = filled(PrioritizedBuffer)
    b, idx, w = buf.sample(4)
    buf.update(idx, b.rew)


def rollout():
    r = RolloutBuffer(3, 2, 4, "cuda")
    for _ in range(3):
        r.insert(torch.rand(2, 4, device="cuda"), torch.rand(2, device="cuda"), torch.rand(2, device="cuda"), torch.zeros(2, device="cuda"))
    return r


def drive_gae():
    rollout().gae(torch.zeros(2, device="cuda"))


def drive_norm():
    norm = RunningNorm(3).to("cuda")
    norm(torch.rand(5, 3, device="cuda"))
    norm.eval()(torch.rand(5, 3, device="cuda"))


def actor():
    return Actor(3, -np.ones(2, dtype=np.float32), np.ones(2, dtype=np.float32)).to("cuda")


def drive_dist():
    actor().dist(torch.rand(4, 3, device="cuda"))


def drive_actor():
    actor()(torch.rand(4, 3, device="cuda"))


def drive_act():
    a = DQNAgent(3, 2, "cuda")
    a.act(np.ones(3))
    a.sync()


def drive_act_softmax():
    DQNAgent(3, 2, "cuda").act_softmax(np.ones(3))


def drive_soft():
    DQNAgent(3, 2, "cuda").soft_loss(torch.rand(4, 3, device="cuda"))
