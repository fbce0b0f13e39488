import torch


class Collator:
    def __init__(self, pad=0, mlm=False):
        self.pad = pad

    def __call__(self, rows):
        width = max(len(r) for r in rows)
        ids = torch.full((len(rows), width), self.pad)
        for i, r in enumerate(rows):
            ids[i, :len(r)] = torch.as_tensor(r)
        mask = (ids != self.pad).float()
        labels = ids.masked_fill(mask == 0, -100)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}
