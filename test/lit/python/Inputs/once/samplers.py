from schedule import Schedule


def sampler(t):
    return Schedule(10).at(t)


def noise(schedule, t):
    return schedule.at(t).sqrt()
