"""many_tensors.py: prints a function with many tensors. many_tensors.py PICTURE: fails unless the picture of it is not
wider than a page, names each of them, and no two boxes overlap."""

import re
import sys

COUNT = 40
PAGE = 1000


def source():
    lines = ["#include <torch/torch.h>", "torch::Tensor many(torch::Tensor a, bool b) {"]
    for i in range(COUNT):
        lines.append(f"  auto made{i} = torch::ones({{2}});")
        if i % 3:
            lines.append(f"  auto moved{i} = made{i}.to(b ? torch::kCUDA : torch::kCPU);")
        else:
            lines.append(f"  if (b) made{i} = made{i}.cuda();")
    lines += ["  return made0 + made3;", "}"]
    return "\n".join(lines)


def check(picture):
    width = int(re.search(r' width="(\d+)"', picture).group(1))
    if width > PAGE:
        sys.exit(f"the picture is {width} wide")
    names = re.findall(r'<text class="name item"[^>]*>([^<]*)<', picture)
    wanted = [f"made{i}" for i in range(COUNT)] + [f"moved{i}" for i in range(COUNT) if i % 3]
    for name in wanted:
        if name not in names:
            sys.exit(f"{name} is in no box")
    boxes = [
        tuple(map(int, box))
        for box in re.findall(r'class="box" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', picture)
    ]
    for i, (x, y, boxWidth, boxHeight) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[i + 1 :]:
            if x < x2 + width2 and x2 < x + boxWidth and y < y2 + height2 and y2 < y + boxHeight:
                sys.exit(f"the boxes at {x}, {y} and {x2}, {y2} overlap")


def main():
    if len(sys.argv) == 1:
        print(source())
        return
    with open(sys.argv[1], encoding="utf-8") as stream:
        check(stream.read())


main()
