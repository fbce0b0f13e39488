import torch
import contrastive_memory as cm

DEV = torch.device("cuda")
CFG = cm.MemoryConfig()


def _x():
    return torch.randn(6, CFG.in_features, device=DEV)


def _f():
    return cm.normalized(torch.randn(6, CFG.dim, device=DEV, requires_grad=True))


def _y():
    return torch.tensor([0, 1, 2, 0, 1, 2], device=DEV)


def drive_moco():
    model = cm.MoCo(CFG).to(DEV)
    for _ in range(2):
        model(_x(), _x()).backward()


def drive_moco_half():
    cm.MoCo(CFG, cm.HalfQueue(CFG)).to(DEV)(_x(), _x())


def drive_moco_hard():
    cm.MoCo(cm.MemoryConfig(hard_negatives=3)).to(DEV)(_x(), _x())


def drive_moco_labelled():
    cm.MoCo(CFG, cm.LabelledQueue(CFG)).to(DEV)(_x(), _x())


def drive_symmetric():
    cm.SymmetricMoCo(CFG).to(DEV)(_x(), _x())


def drive_distilled():
    model = cm.DistilledMoCo(CFG).to(DEV)
    model(_x(), _x()).backward()
    model(_x(), _x())


def drive_labelled_push():
    queue = cm.LabelledQueue(CFG).to(DEV)
    queue.push_labelled(_f(), _y())
    queue.histogram()


def drive_labelled_positives():
    queue = cm.LabelledQueue(CFG).to(DEV)
    queue.push_labelled(_f(), _y())
    queue.positives(_y())


def drive_alias():
    cm.AliasSampler([1, 2, 3, 4.0]).draw((5, 2), DEV)


def drive_alias_probability():
    sampler = cm.AliasSampler([1, 2, 3, 4.0])
    sampler.probability(sampler.draw((5, 2), DEV))


def drive_instance():
    memory = cm.InstanceMemory(CFG, popularity=range(1, CFG.size + 1)).to(DEV)
    index = torch.arange(6)
    for _ in range(2):
        features = _f()
        memory(features, index).backward()
        memory.update(features, index)


def drive_host():
    cm.HostMemory(CFG).similarity(_f(), torch.arange(6, device=DEV))


def drive_host_update():
    cm.HostMemory(CFG).update(_f(), torch.arange(6, device=DEV))


def drive_ntxent():
    cm.NTXent()(_f(), _f()).backward()


def drive_ntxent_decoupled():
    cm.NTXent(decoupled=True)(_f(), _f())


def drive_prototypes():
    model = cm.Prototypes(CFG).to(DEV)
    model.start_epoch()
    model(_f(), _f()).backward()


def drive_prototypes_queue():
    model = cm.Prototypes(CFG).to(DEV)
    for _ in range(2):
        model.start_epoch()
        model(_f(), _f())


def drive_centroids():
    cm.ClassCentroids(CFG).to(DEV).update(_f(), _y())


def drive_centroids_exact():
    cm.ClassCentroids(CFG).to(DEV).update(_f(), _y(), exact=True)


def _store():
    store = cm.ClassStore()
    store.add(_f(), _y())
    return store


def drive_store():
    _store().loss(_f(), _y()).backward()


def drive_store_nearest():
    _store().nearest_class(_f())


def _monitor():
    encoder = cm.make_encoder(CFG).to(DEV)
    return cm.KNNMonitor().build([(_x(), _y()), (_x(), _y())], encoder)


def drive_monitor():
    _monitor().error(_f(), _y())


def drive_monitor_accuracy():
    _monitor().accuracy(_f(), _y())


def _shards():
    return [torch.randn(4, CFG.dim, device=f"cuda:{index}") for index in range(3)]


def drive_concat():
    cm.concat_all(_shards())


def drive_uniformity():
    cm.uniformity(_shards())
