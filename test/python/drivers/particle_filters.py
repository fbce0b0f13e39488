import numpy as np
import torch
import particle_filters as pf

DEV = torch.device("cuda")


def _config(**options):
    options.setdefault("ess_ratio", 2.0)
    return pf.FilterConfig(**options)


def _belief(count=32):
    return pf.Belief(torch.rand(count, 3, device=DEV), torch.randn(count, device=DEV).log_softmax(0))


def _resample(name, **options):
    pf.Resampler.registry[name](_config(**options))(_belief())


def _controls(steps=3):
    return torch.rand(steps, 2, device=DEV)


def _observations(steps=3):
    return torch.rand(steps, 3, device=DEV)


def _filter(motion=pf.UnicycleModel, measurement=pf.RangeModel, cls=pf.ParticleFilter, occupancy=None, **options):
    config = _config(**options)
    return cls(config, motion(config), measurement(config), occupancy).to(DEV)


def _run(each):
    each(each.initial(), _controls(), _observations())


def _map():
    return pf.OccupancyMap(np.random.rand(6, 6) > 0.2)


def _history(steps=4):
    each, history = _filter(), pf.History()
    belief = each.initial()
    for control, observation in zip(_controls(steps), _observations(steps)):
        belief, chosen = each.step(belief, control, observation)
        history.append(belief, chosen)
    return each, belief, history


def drive_stratified():
    _resample("stratified")


def drive_systematic():
    _resample("systematic", seed=3)


def drive_multinomial():
    _resample("multinomial")


def drive_multinomial_seed():
    _resample("multinomial", seed=3)


def drive_multinomial_reproducible():
    _resample("multinomial_reproducible", seed=3)


def drive_residual():
    _resample("residual")


def drive_branching():
    _resample("branching")


def drive_soft():
    _resample("soft")


def drive_unicycle():
    _run(_filter())


def drive_correlated():
    _run(_filter(motion=pf.CorrelatedUnicycleModel))


def drive_linear():
    _run(_filter(motion=pf.LinearModel, resampler="soft"))


def drive_neural():
    each = _filter(motion=pf.NeuralModel)
    each.motion.reset(32)
    _run(each)


def drive_neural_fresh():
    _run(_filter(motion=pf.NeuralModel))


def drive_bearing():
    _run(_filter(measurement=pf.BearingModel))


def drive_signal():
    _run(_filter(measurement=pf.SignalStrengthModel, resampler="branching"))


def drive_map():
    _run(_filter(occupancy=_map()))


def drive_map_prior():
    _map().log_prior(_belief().particles)


def drive_robust():
    _run(_filter(cls=pf.RobustParticleFilter))


def drive_history():
    _, _, history = _history()
    history.genealogy(3)
    history.means()


def drive_smooth():
    each, belief, history = _history()
    history.smooth_last(each.motion, belief, _controls(1)[0])


def drive_kalman():
    kalman = pf.KalmanFilter(4, 2).to(DEV)
    kalman(torch.zeros(4, device=DEV), torch.eye(4, device=DEV), torch.ones(2, device=DEV))


def drive_kalman_joseph():
    kalman = pf.KalmanFilter(4, 2, joseph=True).to(DEV)
    kalman(torch.zeros(4, device=DEV), torch.eye(4, device=DEV), torch.ones(2, device=DEV))


def _islands():
    def make(config):
        return pf.ParticleFilter(config, pf.UnicycleModel(config), pf.RangeModel(config))
    islands = pf.IslandFilter(make, _config(), ["cuda:0", "cuda:1", "cuda:2"])
    islands.step(torch.rand(2), torch.rand(3))
    return islands


def drive_islands():
    _islands().mean()


def drive_islands_gathered():
    _islands().gathered()
