class Callback:
    def __init__(self, settings):
        self.settings = settings

    def on_fit_start(self, trainer):
        pass

    def on_step_end(self, trainer, loss):
        pass

    def on_epoch_end(self, trainer, epoch):
        pass

    def on_fit_end(self, trainer):
        pass
