from .margin import ArcFace, ProxyNCA
from .ntxent import NTXent
from .triplet import BatchTriplet

CRITERIA = {
    'simclr': lambda args: NTXent(args.batch_size, mask_self=args.mask_self),
    'triplet': lambda args: BatchTriplet(mining=args.mining),
    'proxy': lambda args: ProxyNCA(4, args.dim),
    'arcface': lambda args: ArcFace(4, args.dim),
}
