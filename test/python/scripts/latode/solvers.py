"""Fixed and adaptive Runge-Kutta methods; func(t, y) -> dy/dt."""
import torch

# Bogacki-Shampine, order 3(2)
_C = (0.0, 0.5, 0.75)
_B3 = torch.tensor([2 / 9, 1 / 3, 4 / 9])
_ERROR = torch.tensor([2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8])


def euler(func, t, y, dt):
    return y + dt * func(t, y)


def rk4(func, t, y, dt):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt / 2 * k1)
    k3 = func(t + dt / 2, y + dt / 2 * k2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def bosh3(func, t, y, dt):
    """One step and the estimate of its error."""
    ks = []
    for c in _C:
        ks.append(func(t + c * dt, y + c * dt * ks[-1] if ks else y))
    new = y + dt * sum(b * k for b, k in zip(_B3, ks))
    ks.append(func(t + dt, new))
    error = dt * torch.einsum('k,kbd->bd', _ERROR, torch.stack(ks))  # raises
    return new, error


def fixed(step, func, y, times, substeps):
    path = [y]
    for start, end in zip(times[:-1], times[1:]):
        dt = (end - start) / substeps
        for i in range(substeps):
            y = step(func, start + i * dt, y, dt)
        path.append(y)
    return torch.stack(path)


def adaptive(func, y, times, tolerance, most=200):
    path = [y]
    dt = (times[1] - times[0]) / 2
    for start, end in zip(times[:-1], times[1:]):
        t = start
        for _ in range(most):
            if t >= end - 1e-6:
                break
            dt = torch.minimum(dt, end - t)
            new, error = bosh3(func, t, y, dt)
            size = error.detach().abs().max()
            if size <= tolerance:
                t, y = t + dt, new
            dt = dt * float((0.9 * (tolerance / (size + 1e-9)) ** (1 / 3)).clamp(0.3, 3.0))
        path.append(y)
    return torch.stack(path)


def odeint(func, y, times, options):
    if options.solver == 'adaptive':
        return adaptive(func, y, times, options.tolerance)
    return fixed({'euler': euler, 'rk4': rk4}[options.solver], func, y, times, options.substeps)
