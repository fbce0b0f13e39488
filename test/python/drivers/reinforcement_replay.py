import torch

import reinforcement_replay as r

G = "cuda:0"
C = r.ReplayConfig()


def steps(n, device=G):
    return dict(obs=torch.rand(n, 4, device=device), action=torch.randint(0, 3, (n,), device=device),
                reward=torch.rand(n, device=device), next_obs=torch.rand(n, 4, device=device),
                done=torch.zeros(n, device=device))


def filled(cls, **kw):
    memory = cls(r.ReplayConfig(**kw))
    many = steps(8)
    for i in range(8):
        memory.push(**{k: v[i] for k, v in many.items()})
    return memory


def drive_uniform():
    filled(r.UniformReplay).sample(4)


def drive_uniform_gpu_storage():
    memory = filled(r.UniformReplay, storage_device="cuda:0")
    memory.push_many(**steps(4))
    memory.sample(4)


def drive_push_many():
    r.UniformReplay(C).push_many(**steps(4))


def drive_push_many_host():
    r.UniformReplay(C).push_many(**steps(4, "cpu"))


def drive_prioritized_update():
    memory = filled(r.PrioritizedReplay)
    memory.update(r.ValueAgent(C).td_error(memory.sample(4)))


def drive_prioritized_rescale():
    memory = filled(r.PrioritizedReplay)
    memory.rescale(r.ValueAgent(C).td_error(memory.sample(4)))


def drive_prioritized_loss():
    memory = filled(r.PrioritizedReplay)
    r.ValueAgent(C).loss(memory.sample(4))


def accumulator():
    each = r.NStepAccumulator(C)
    for _ in range(4):
        each.append(**steps(2))
    return each


def drive_nstep():
    accumulator()


def drive_nstep_done():
    accumulator().returns_until_done()


def drive_goals():
    r.GoalRelabeler()(torch.rand(5, 2, device=G), torch.rand(5, 2, device=G))


def drive_goals_final():
    r.GoalRelabeler().final(torch.rand(5, 2, device=G), torch.rand(5, 2, device=G))


def drive_moments():
    one, two = r.RunningMoments((4,)), r.RunningMoments((4,))
    one.update(torch.rand(8, 4, device=G))
    two.update(torch.rand(8, 4, device="cuda:1"))
    one.merge(two)
    one.normalize(torch.rand(8, 4, device="cuda:1"))


def drive_agent():
    agent = r.ValueAgent(C)
    agent.act(torch.rand(6, 4))
    agent.loss(filled(r.UniformReplay).sample(4)).backward()
    agent.polyak()


def drive_agent_moved():
    agent = r.ValueAgent(C).to("cuda:1")
    agent.act(torch.rand(6, 4))
    agent.polyak()
    agent.td_error(filled(r.UniformReplay, learner_device="cuda:1").sample(4))


def drive_restore():
    agent = r.ValueAgent(C)
    agent.restore(agent.snapshot())
    agent.loss(filled(r.UniformReplay).sample(4))


def drive_drift():
    agent = r.ValueAgent(C)
    agent.drift(agent.snapshot())


def drive_categorical():
    agent = r.CategoricalAgent(C)
    agent.act(torch.rand(6, 4, device=G))
    agent.loss(filled(r.UniformReplay).sample(4)).backward()


def drive_categorical_moved():
    r.CategoricalAgent(C).to("cuda:1").act(torch.rand(6, 4, device=G))


def drive_tail_risk():
    r.CategoricalAgent(C).tail_risk(torch.rand(6, 4, device=G))


def drive_actor():
    actor = r.RecurrentActor(C).to(G)
    hidden = actor.initial(2)
    for _ in range(2):
        policy, _, hidden = actor(torch.rand(1, 2, 4, device=G), hidden, torch.zeros(2))
        policy.sample()


def drive_unroll():
    r.RecurrentActor(C).to(G).unroll([torch.rand(3, 2, 4, device=G)] * 2)


def rollout():
    buffer = r.RolloutBuffer()
    for _ in range(3):
        buffer.append(**steps(2), value=torch.rand(2, device=G), log_prob=torch.rand(2, device=G))
    return buffer


def drive_minibatches():
    list(rollout().minibatches(2, torch.rand(2, device=G)))


def drive_returns():
    rollout().returns(torch.rand(2, device=G))


def drive_tuner():
    tuner = r.EntropyTuner(0.5)
    tuner.step(torch.rand(4, device=G))
    tuner.bonus(torch.rand(4, device=G))


def drive_tuner_by_action():
    tuner = r.EntropyTuner(0.5, per_action=3)
    tuner.step(torch.rand(4, device=G))
    tuner.bonus(torch.rand(4, device=G))
    tuner.bonus_by_action(torch.rand(4, 3, device=G).log_softmax(-1))
