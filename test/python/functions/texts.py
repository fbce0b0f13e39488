import torch


def case_percent():
    parts = [torch.ones(2).to("cuda:%d" % card) for card in (0, 1)]
    return torch.cat(parts)  # raises


def case_percent_of_two():
    return torch.ones(2, device="%s:%d" % ("cuda", 1)) + torch.ones(2, device="cuda:0")  # raises


def case_format():
    parts = [each.to("cuda:{}".format(card)) for card, each in enumerate(torch.ones(4, 2).chunk(2))]
    return torch.cat(parts)  # raises


def case_format_of_one_card():
    parts = [each.to("cuda:{}".format(card * 0)) for card, each in enumerate(torch.ones(4, 2).chunk(2))]
    return torch.cat(parts) + torch.ones(2, device="cuda:%i" % 0)


def case_repeated():
    axes = [torch.ones(3)] * 2
    return torch.cartesian_prod(*axes) + torch.ones(9, 2, device="cuda")  # raises


def case_repeated_there():
    axes = 2 * [torch.ones(3, device="cuda")]
    return torch.cartesian_prod(*axes) + torch.ones(9, 2, device="cuda")
