from . import attention, convs
