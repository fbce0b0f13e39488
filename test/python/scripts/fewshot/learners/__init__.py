import importlib


def get_learner(name):
    module = importlib.import_module('learners.' + name)
    return module.Learner
