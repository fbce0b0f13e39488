import numpy as np
import torch

import world_models as wm

DEV = torch.device("cuda", 0)
CFG = wm.WorldConfig()
WIDTH = CFG.deter + CFG.stoch


def _batch(b=3, t=5):
    batch = {"obs": torch.randn(b, t, 6), "action": torch.randn(b, t, 2), "reward": torch.randn(b, t),
             "first": torch.rand(b, t) < 0.3, "last": torch.rand(b, t) < 0.3}
    return wm.to_torch(batch, DEV)


def _feature(*shape):
    return torch.randn(*(shape or (4, 3)), WIDTH, device=DEV)


def _model():
    return wm.WorldModel(CFG).to(DEV)


def _logits():
    return torch.randn(3, 5, 3, 4, device=DEV).log_softmax(-1)


def drive_losses():
    loss, _, post = _model().losses(_batch())
    loss.backward()
    return post


def drive_imagine():
    model, actor = _model(), wm.Actor(CFG).to(DEV)
    _, post = model.observe(_batch())
    feature = model.imagine(post.map(lambda v: v.flatten(0, 1)), actor)
    return model.reward.mean(feature)


def drive_discount():
    return _model().cont.discount(_feature())


def drive_free_kl():
    return _model().rssm.free_kl(_logits(), _logits())


def drive_kl():
    return _model().rssm.kl(_logits(), _logits())


def drive_twohot():
    return _model().reward.loss(_feature(), torch.randn(4, 3, device=DEV))


def drive_explore():
    return wm.Actor(CFG).to(DEV).explore(_feature())


def drive_clipped():
    return wm.Actor(CFG).to(DEV).clipped(_feature())


def drive_normalize():
    norm = wm.ReturnNormalizer()
    norm(torch.randn(4, 5, device=DEV))
    return norm(torch.randn(4, 5, device=DEV))


def drive_spread():
    return wm.ReturnNormalizer(device=DEV).spread(torch.randn(4, 5, device=DEV))


def drive_slow():
    head = wm.TwoHotHead(CFG)
    slow = wm.SlowCopy(head)
    head.to(DEV)
    slow.update()
    return slow.regularizer(_feature())


def _replay():
    replay = wm.EpisodeReplay(5, 4, DEV)
    for _ in range(3):
        for t in range(6):
            replay.add(last=t == 5, obs=torch.randn(6, device=DEV), action=np.zeros(2, np.float32), reward=0.5)
    return replay


def drive_replay():
    replay = _replay()
    index, batch = replay.sample(3)
    replay.reprioritize(index, batch["obs"].sum((1, 2)))
    return replay.sample(2)


def drive_importance():
    replay = _replay()
    index, batch = replay.sample(3)
    return replay.importance(index, batch["obs"].mean((1, 2)))


def _planner():
    model = _model()
    return wm.CemPlanner(CFG, model.rssm, model.reward.mean), model.rssm.initial(1)


def drive_plan():
    planner, state = _planner()
    planner.plan(state)
    return planner.plan(state, refine=False)


def drive_replan():
    planner, state = _planner()
    planner.plan(state)
    return planner.replan(state)


def drive_replan_cold():
    planner, state = _planner()
    return planner.replan(state)


def drive_disagreement():
    return wm.DisagreementEnsemble(CFG).to(DEV)(_feature())


def drive_bonus():
    return wm.DisagreementEnsemble(CFG).to(DEV).bonus(_feature())


def drive_report():
    return _model().report(_batch())


def _agent():
    return wm.LatentAgent(_model(), wm.Actor(CFG).to(DEV), 3)


def drive_act():
    agent = _agent()
    for first in (True, False, False):
        action = agent.act(np.zeros((3, 6), np.float32), np.full(3, first))
    return action


def drive_forget():
    agent = _agent()
    agent.act(np.zeros((3, 6), np.float32), np.ones(3, bool))
    agent.forget(np.array([True, False, False]))
