"""Procedural backdrops (torch, vectorised over a batch) and the caption/layout sampler."""
import math, random, re
import torch

COL = {"white": (255, 255, 255), "black": (20, 20, 24), "grey": (150, 152, 158), "red": (222, 52, 58), "orange": (246, 146, 44),
       "yellow": (252, 212, 70), "green": (76, 170, 86), "light blue": (160, 214, 246), "blue": (44, 104, 214), "purple": (136, 82, 190),
       "pink": (248, 160, 190), "brown": (140, 94, 60), "beige": (240, 226, 198), "teal": (40, 158, 156), "dark blue": (24, 38, 86)}
# the named hues as angles (in turns) of the chroma plane that train.py turns: NOT hue-wheel angles
HUE = {k: math.atan2(.211 * r - .523 * g + .312 * b, .596 * r - .274 * g - .322 * b) / 6.2832 % 1
       for k, (r, g, b) in COL.items() if k in ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink")}
# kind -> (phrases, horizon range, floor for feet, outdoors, takes a shadow)
SCENES = {
    "meadow": (["in a meadow", "on the grass", "in a green field", "in a park"], (.5, .7), 1, 1),
    "hills": (["on the hills", "in the hills", "on a green hill"], (.45, .62), 1, 1),
    "snow": (["in the snow", "on a snowy field", "in the winter snow"], (.5, .68), 1, 1),
    "beach": (["on the beach", "on a sandy beach", "by the sea"], (.42, .55), 1, 1),
    "sea": (["on the sea", "on the water", "in the ocean"], (.48, .62), 2, 1),
    "desert": (["in the desert", "on the sand dunes"], (.45, .62), 1, 1),
    "forest": (["in a forest", "in the woods", "among trees"], (.55, .7), 1, 1),
    "mountains": (["in the mountains", "in front of mountains"], (.55, .7), 1, 1),
    "city": (["in a city", "in the city", "in front of tall buildings"], (.66, .76), 1, 1),
    "street": (["on a street", "on the road"], (.55, .68), 1, 1),
    "room": (["in a room", "indoors", "at home"], (.6, .74), 1, 0),
    "table": (["on a table", "on a wooden table"], (.55, .68), 1, 0),
    "space": (["in space", "in outer space"], (2, 2), 0, 0),
    "underwater": (["under water", "underwater", "at the bottom of the sea"], (2, 2), 0, 0),
    "sky": (["in the sky", "above the clouds", "flying in the sky"], (2, 2), 0, 1),
}
NOUN = {"meadow": ["a meadow", "a green field", "a park", "grass"], "hills": ["hills", "green hills", "a landscape of hills"], "snow": ["a snowy field", "a winter landscape", "snow"],
        "beach": ["a beach", "a sandy beach", "the beach", "the seaside"], "sea": ["the sea", "the ocean", "open water"], "desert": ["a desert", "sand dunes"],
        "forest": ["a forest", "the woods", "trees"], "mountains": ["mountains", "a mountain landscape"], "city": ["a city", "tall buildings", "the city"],
        "street": ["a street", "a road with houses"], "room": ["a room", "an empty room"], "table": ["a table", "a wooden table"], "space": ["outer space", "space", "stars and planets"],
        "underwater": ["under water", "the bottom of the sea", "an underwater scene"], "sky": ["the sky", "clouds in the sky"]}
KINDS = list(SCENES)
TIMES = ["day", "night", "sunset", "rain"]
TIMEP = {"day": ["on a sunny day", "in daylight"], "night": ["at night", "by night"], "sunset": ["at sunset", "in the evening"],
         "rain": ["in the rain", "on a rainy day"]}


def bank(kind, time, n, size, dev, gen):
    """n pictures [n, 3, size, size] in 0..1 of one kind of place at one time."""
    S = size * 2
    r = lambda *s: torch.rand(*s, 1, 1, device=dev, generator=gen)
    y, x = torch.meshgrid((torch.arange(S, device=dev) + .5) / S, (torch.arange(S, device=dev) + .5) / S, indexing="ij")
    y, x = y[None], x[None]
    c = lambda *v: torch.tensor(v, device=dev).view(1, 3, 1, 1) / 255
    jit = lambda col, a=.05: (col + (torch.rand(n, 3, 1, 1, device=dev, generator=gen) - .5) * 2 * a).clamp(0, 1)
    night, sunset, rain = time == "night", time == "sunset", time == "rain"
    mix = lambda a, b, m: a * (1 - m[:, None]) + b * m[:, None]
    tint = c(92, 104, 150) if night else c(255, 214, 190) if sunset else c(190, 196, 206) if rain else c(255, 255, 255)
    g = lambda *v: jit(c(*v)) * tint          # a colour under this light
    img = [None]
    put = lambda col, m: img.__setitem__(0, mix(img[0], col, m.float()))
    sky = {"day": ((96, 176, 240), (196, 230, 252)), "night": ((12, 18, 52), (40, 54, 110)), "sunset": ((88, 80, 150), (252, 158, 92)),
           "rain": ((120, 130, 146), (176, 184, 194))}[time]
    lo, hi = SCENES[kind][1]
    hz = lo + (hi - lo) * r(n)
    img[0] = mix(jit(c(*sky[0])).expand(n, 3, S, S), jit(c(*sky[1])), (y / hz.clamp(max=1)).clamp(0, 1).expand(n, S, S))
    disc = lambda cx, cy, rad: ((x - cx) ** 2 + (y - cy) ** 2) < rad ** 2
    dots = lambda k, rad, top: torch.stack([disc(r(n), r(n) * top, rad * (.5 + r(n))) for _ in range(k)]).any(0)
    wave = lambda base, a, f: base + a * torch.sin(x * f * (1 + r(n)) + 6.3 * r(n)) + a * .5 * torch.sin(x * 2.1 * f * (1 + r(n)) + 6.3 * r(n))
    cloud = lambda cx, cy, s: disc(cx, cy, s) | disc(cx + 1.1 * s, cy + .2 * s, .75 * s) | disc(cx - 1.1 * s, cy + .25 * s, .7 * s)
    if kind in ("room", "table"):
        wall = jit(c(*random.choice([(236, 224, 200), (204, 224, 228), (226, 208, 214), (214, 222, 196), (240, 236, 230)])), .04)
        img[0] = (wall * (c(120, 124, 160) if night else c(255, 255, 255))).expand(n, 3, S, S)
        wx, wy, ww = .1 + .55 * r(n), .08 + .08 * r(n), .24 + .08 * r(n)
        has = r(n) < (.85 if kind == "room" or night or rain or sunset else .4)
        win = (x > wx) & (x < wx + ww) & (y > wy) & (y < wy + ww * 1.1) & has
        fr = (x > wx - .015) & (x < wx + ww + .015) & (y > wy - .015) & (y < wy + ww * 1.1 + .015) & has
        put(g(250, 250, 246), fr)
        put(jit(c(*(sky[0] if night else sky[1]))), win)
        if night:
            put(c(250, 240, 190), disc(wx + ww * .65, wy + ww * .3, .035) & win)
        put(g(250, 250, 246), fr & (((x - wx - ww / 2).abs() < .006) | ((y - wy - ww * .55).abs() < .006)))
        if kind == "room":
            put(g(*random.choice([(176, 124, 80), (150, 110, 84), (190, 160, 130)])), (y > hz).expand(n, S, S))
            put(g(240, 236, 226), ((y > hz - .02) & (y < hz)).expand(n, S, S))
        else:
            t = (y - hz) / .3
            put(g(164, 106, 62), ((y > hz) & ((x - .5).abs() < .42 + .1 * t.clamp(max=1))).expand(n, S, S))
            put(g(130, 82, 46), (y > hz + .3).expand(n, S, S) & ((x - .5).abs() < .52))
    elif kind == "space":
        img[0] = mix(jit(c(10, 10, 30), .03).expand(n, 3, S, S), jit(c(46, 24, 82)), (y * .6 + x * .3 * r(n)).expand(n, S, S))
        put(c(255, 255, 255), dots(26, .005, 1)); put(c(255, 236, 170), dots(6, .009, 1))
        px, py = r(n), r(n)
        put(g(*random.choice([(214, 120, 80), (90, 140, 220), (200, 170, 120), (140, 190, 150)])), disc(px, py, .05 + .09 * r(n)) & (r(n) < .7))
    elif kind == "underwater":
        img[0] = mix(jit(c(70, 180, 222)).expand(n, 3, S, S), jit(c(12, 62, 130)), y.expand(n, S, S))
        put(jit(c(222, 200, 150)), y > wave(.84 + .08 * r(n), .015, 5))
        for _ in range(4):
            wx = r(n); put(jit(c(50, 150, 96)), ((x - wx - .015 * torch.sin(y * 22 + 6 * r(n))).abs() < .014) & (y > .62 + .2 * r(n)) & (y < .92))
        for _ in range(9):
            bx, by, b = r(n), r(n) * .8, .008 + .016 * r(n); put(c(206, 240, 252), disc(bx, by, b) & ~disc(bx, by, b * .62))
    else:
        if night:
            put(c(255, 255, 255), dots(22, .0045, .55)); mx, my = .12 + .76 * r(n), .1 + .15 * r(n)
            put(c(250, 240, 196), disc(mx, my, .065))
            put(jit(c(26, 34, 80), .01), disc(mx + .03, my - .012, .056) & (r(n) < .5))
        elif sunset:
            put(c(255, 226, 130), disc(.15 + .7 * r(n), hz.clamp(max=.75) - .06 + .05 * r(n), .1))
        elif rain:
            for i in range(4):
                put(jit(c(112, 120, 134)), cloud((i + r(n)) / 4, .04 + .12 * r(n), .07 + .04 * r(n)))
        else:
            put(c(255, 224, 90), disc(.08 + .84 * r(n), .08 + .1 * r(n), .07) & (r(n) < .6))
            for i in range(3):
                put(c(255, 255, 255), cloud((i + r(n)) / 3, .08 + .22 * r(n), .04 + .035 * r(n)) & (r(n) < .7))
        if kind == "sky":
            for i in range(4):
                put(g(250, 252, 255), cloud((i + r(n)) / 4, .82 + .16 * r(n), .09 + .06 * r(n)))
        if kind in ("mountains",) or (kind == "snow" and random.random() < .4):
            for i in range(4):
                cx, top, sl = (i + r(n)) / 4, hz - .12 - .24 * r(n), .7 + .5 * r(n)
                rel = y - top - (x - cx).abs() * sl * 1.0
                put(g(116, 126, 150) if i % 2 else g(96, 108, 134), rel > 0)
                put(g(246, 250, 255), (rel > 0) & (y < top + .07 + .02 * torch.sin(x * 60)))
        gcol = {"meadow": (112, 190, 84), "hills": (122, 196, 88), "snow": (240, 246, 252), "beach": (240, 214, 156), "sea": (36, 118, 200),
                "desert": (234, 184, 106), "forest": (88, 156, 74), "mountains": (120, 178, 92), "city": (126, 130, 140), "street": (88, 92, 102),
                "sky": None}[kind]
        if kind == "city":
            for i in range(9):
                cx, w, top = (i + .8 * r(n)) / 8, .05 + .03 * r(n), hz - .12 - .38 * r(n)
                m = ((x - cx).abs() < w) & (y > top) & (y < hz)
                put(g(*random.choice([(120, 132, 156), (156, 150, 160), (94, 110, 140), (178, 160, 146), (110, 126, 134)])), m)
                lit = ((x * 40 + 3 * r(n)) % 1 < .5) & ((y * 34) % 1 < .5) & m & ((x - cx).abs() < w * .8) & (y > top + .02)
                put(c(255, 226, 130) if night else g(214, 230, 244), lit)
        if kind == "hills":
            put(g(92, 166, 90), y > wave(hz - .1, .05, 4)); put(g(136, 204, 96), y > wave(hz, .04, 4))
            put(g(112, 190, 84), y > wave(hz + .14, .03, 3))
        elif kind == "desert":
            put(g(222, 168, 98), y > wave(hz - .05, .05, 4)); put(g(*gcol), y > wave(hz + .08, .03, 3))
        elif kind == "beach":
            put(g(44, 140, 206), (y > hz).expand(n, S, S)); e = wave(hz + .12 + .06 * r(n), .012, 8)
            put(g(250, 252, 252), y > e - .015); put(g(*gcol), y > e)
        elif kind == "sea":
            put(g(52, 140, 214), (y > hz).expand(n, S, S))
            for i in range(4):
                put(g(40 - 6 * i, 122 - 10 * i, 202 - 12 * i), y > wave(hz + .06 + .11 * i, .012, 14))
        elif gcol:
            put(g(*gcol), y > (wave(hz, .012, 4) if kind in ("meadow", "snow", "forest") else hz.expand(n, S, S)))
        if kind == "meadow":
            for col in ((250, 220, 80), (248, 250, 250), (240, 120, 150)):
                put(g(*col), torch.stack([disc(r(n), hz + .04 + (.95 - hz) * r(n), .008) for _ in range(5)]).any(0) & (r(n) < .6))
        if kind == "forest":
            for i in range(9):
                cx, by, hgt = (i + .9 * r(n)) / 9, hz + .02 + .05 * r(n), .28 + .2 * r(n)
                put(g(104, 74, 48), ((x - cx).abs() < .012) & (y > by - .06) & (y < by + .03))
                rel = (y - (by - hgt)) / (hgt - .04)
                put(g(36, 110 + 14 * (i % 3), 62), (rel > 0) & (rel < 1) & ((x - cx).abs() < .085 * (rel * .75 + .25 * ((rel * 3) % 1))))
        if kind == "street":
            for i in range(5):
                cx, w, top = (i + .6 * r(n)) / 4.4, .09 + .03 * r(n), hz - .16 - .24 * r(n)
                m = ((x - cx).abs() < w) & (y > top) & (y < hz)
                put(g(*random.choice([(206, 150, 118), (226, 200, 160), (160, 176, 190), (190, 120, 108), (150, 168, 140)])), m)
                put(c(255, 226, 130) if night else g(206, 228, 242), ((x * 14) % 1 < .5) & ((y * 12) % 1 < .5) & m & ((x - cx).abs() < w * .75))
            put(g(186, 188, 192), ((y > hz) & (y < hz + .07)).expand(n, S, S))
            put(g(246, 240, 220), ((y - .86).abs() < .012).expand(n, S, S) & ((x * 5 + r(n)) % 1 < .55))
        if kind == "snow" and not rain:
            put(c(255, 255, 255), dots(26, .008, .95))
        if rain:
            for _ in range(34):
                rx, ry = r(n) * 1.1, r(n); t = y - ry
                put(c(200, 220, 240), ((x - rx + t * .3).abs() < .0028) & (t > 0) & (t < .07))
    out = torch.nn.functional.avg_pool2d(img[0], 2)
    return out.clamp(0, 1)


def art(n):
    if re.search(r"[^s]s$", n) and not re.search(r"(bus|cactus|octopus|compass|glass|walrus|chess|lotus)$", n) or re.search(r"^(two|three|bacon|rice|fire|money|water|snow|om|salt|honey|ice|butter|jeans|hair)\b", n):
        return n
    return ("an " if n[0] in "aeiou" and not n.startswith(("uni", "one")) else "a ") + n


ALIAS = {"automobile": "car", "oncoming automobile": "car from the front", "sport utility vehicle": "jeep", "flying saucer": "ufo", "deciduous tree": "tree",
         "evergreen tree": "pine tree", "house with garden": "house and a garden", "passenger ship": "cruise ship", "locomotive": "steam train",
         "mobile phone": "phone", "running shoe": "sneaker", "billed cap": "baseball cap", "high heeled shoe": "high heels", "soccer ball": "football",
         "articulated lorry": "truck", "delivery truck": "van", "fire engine": "fire truck", "desktop computer": "computer", "cocktail glass": "cocktail",
         "hot beverage": "cup of coffee", "beer mug": "beer", "shortcake": "slice of cake", "birthday cake": "cake", "sun with face": "smiling sun",
         "spouting whale": "whale", "snow capped mountain": "snowy mountain", "mount fuji": "volcano with snow", "t shirt": "shirt", "woman's hat": "hat",
         "wrapped gift": "present", "party popper": "confetti", "video game": "game controller", "lady beetle": "ladybug", "honeybee": "bee", "front facing baby chick": "chick",
         "baby chick": "little chick", "cat face": "face of a cat", "dog face": "face of a dog", "police car light": "siren", "sunrise over mountains": "sunrise in the mountains",
         "closed book": "book", "light bulb": "lamp", "couch and lamp": "sofa with a lamp", "ogre": "red demon", "small airplane": "plane", "airplane": "aeroplane",
         "tangerine": "orange fruit", "sheaf of rice": "grain", "cooked rice": "bowl of rice", "steaming bowl": "bowl of noodle soup", "skull and crossbones": "pirate skull",
         "person running": "runner", "grinning face": "happy face", "crying face": "sad face", "pouting face": "angry face", "rosette": "flower ornament", "motor scooter": "scooter"}
STYLEP = {"flat": ["{}, flat style", "flat illustration of {}", "{}, flat", "a flat drawing of {}"], "3d": ["{}, 3d style", "3d render of {}", "{}, 3d", "a 3d picture of {}"],
          "cartoon": ["{}, cartoon style", "cartoon of {}", "{}, cartoon", "a cartoon of {}"], "simple": ["{}, simple style", "simple icon of {}", "{}, simple", "a simple drawing of {}"]}
GW = {"Animals & Nature": 1.6, "Food & Drink": 1.3, "Travel & Places": 1.3, "Objects": 1.0, "Activities": 1.0, "Smileys & Emotion": .6, "People & Body": .55, "Symbols": .4}
SW = [.46, .22, .32]
FULL = re.compile(r"\b(walking|running|standing|kneeling|dancing|dancer|climbing|rowing|biking|fairy|mermaid|merman|ninja|skier|snowboarder|surfing|swimming|superhero|zombie|genie)\b")
NSLOT = 4


# What is never shown together in training, so that judge.py can ask for it: (subject, colour, place, second subject), "" where it has none.
HOLD = []
for i, (n, c) in enumerate(zip("""car,house,mug,balloon,bicycle,umbrella,backpack,bird,fish,butterfly,rocket,tent,chair,key,hat,boat,train,bus,scarf,dress,guitar,kite,book,flower,
mushroom,dragon,teapot,crown,gem,door""".replace("\n", "").split(","), ["blue", "purple", "green", "teal", "orange", "pink", "red", "yellow"] * 4)):
    HOLD.append((n, c, ["beach", "snow", "city", "forest", "desert", "room", "street", "hills"][i * 3 % 8], ""))
for a, b in zip("cat,dog,horse,fox,bear,rabbit,owl,penguin,elephant,lion,pizza,cake,apple,robot,snowman,tree,cactus,rose,train,ship,turtle,whale,monkey,pig,cow".split(","),
                "umbrella,balloon,guitar,lantern,bicycle,clock,candle,rocket,piano,drum,telephone,sword,airplane,pumpkin,sunflower,bed,castle,bell,elephant,giraffe,ladder,lemon,camera,violin,tractor".split(",")):
    HOLD.append((a, "", "", b))
for i, n in enumerate("""elephant,tiger,penguin,camel,fox,owl,frog,duck,octopus,crab,shark,cow,horse,rabbit,squirrel,snail,bee,hedgehog,zebra,giraffe,kangaroo,panda,airplane,helicopter,
bus,tractor,rocket,sailboat,fire truck,castle,tent,guitar,piano,trumpet,violin,pizza,hamburger,cake,banana,pineapple,strawberry,mushroom,cactus,pumpkin,snowman""".replace("\n", "").split(",")):
    HOLD.append((n, "", ["city", "snow", "beach", "room", "space", "desert", "street", "mountains", "sea"][i * 4 % 9], ""))
ASK = {"car": "automobile", "mug": "hot beverage", "tent": "tent", "boat": "sailboat", "hat": "woman's hat", "flower": "tulip", "book": "closed book", "fish": "tropical fish", "gem": "gem stone",
       "lantern": "red paper lantern", "clock": "mantelpiece clock", "piano": "musical keyboard", "tree": "deciduous tree", "ship": "ship", "whale": "spouting whale", "cake": "birthday cake",
       "apple": "red apple", "telephone": "telephone", "sword": "dagger", "bicycle": "bicycle", "pumpkin": "jack o lantern", "bee": "honeybee", "fire truck": "fire engine", "train": "locomotive",
       "camera": "camera", "drum": "drum", "rabbit": "rabbit", "tiger": "tiger", "snowman": "snowman without snow", "umbrella": "umbrella", "bed": "bed", "hedgehog": "hedgehog", "squirrel": "chipmunk"}
_held = {(ASK.get(n, n), c, k, ASK.get(b, b)) for n, c, k, b in HOLD}
HELD_PLACE = {(n, k) for n, c, k, b in _held if k}
HELD_COLOUR = {(n, c) for n, c, k, b in _held if c}
HELD_PAIR = {frozenset((n, b)) for n, c, k, b in _held if b}


def held(names, colours, kind):
    """whether a layout shows what is kept for judging"""
    return any((n, kind) in HELD_PLACE or (n, c) in HELD_COLOUR for n, c in zip(names, colours)) or len(names) == 2 and frozenset(names) in HELD_PAIR


class Sampler:
    """Draws captions and layouts. A layout is a flat float list per slot: sprite, cx, cy, scale, flip, hue turn, shadow, tint,
    whether the turn spares skin and hair. A row of -2 is a transparent background."""

    def __init__(self, index, hues, bank_rows, seed=0):
        self.c, self.rng, self.hues, self.bank = index["concepts"], random.Random(seed), hues, bank_rows
        self.by = {}
        for i, s in enumerate(index["sprites"]):
            self.by.setdefault(s[0], {}).setdefault(s[1], []).append((i, s[2], s[5] / index["size"], s[6] / index["size"]))
        self.w = [GW[c["group"]] * (3 if FULL.search(c["name"]) else 1) for c in self.c]
        self.st = index["styles"]
        self.ids = range(len(self.c))

    def name(self, ci, plural=False):
        R, c = self.rng, self.c[ci]
        n = c["name"]
        if n in ALIAS and R.random() < .5:
            n = ALIAS[n]
        u = R.random()
        if c["kw"] and u < .05 and not plural:
            n = R.choice(c["kw"][:4])
        return n

    def pick(self, style=None):
        R = self.rng
        while True:
            ci = R.choices(self.ids, self.w)[0]
            sts = self.by[ci]
            if style is None:
                s = R.choices(list(sts), [SW[k] for k in sts])[0]
            elif style in sts:
                s = style
            else:
                continue
            i, tone, w, h = R.choice(sts[s])
            return ci, s, i, tone, w, h

    def subject(self, style=None):
        """-> noun phrase, style, slot fields (sprite, w, h, hue turn)"""
        R = self.rng
        ci, s, i, tone, w, h = self.pick(style)
        n, turn, spare, colour = self.name(ci), 0.0, 0.0, ""
        hue, coh, hue2, coh2 = self.hues[i]
        if self.c[ci]["group"] == "People & Body" and coh2 > .5 and R.random() < .45:
            colour = R.choice(list(HUE)); turn, spare = (HUE[colour] - hue2 + .5) % 1 - .5, 1.0
            n += R.choice([" in ", " in ", " wearing ", " dressed in "]) + colour
        elif coh > .55 and self.c[ci]["group"] not in ("Smileys & Emotion", "People & Body", "Symbols") and not any(k in n.split() for k in HUE) and R.random() < .3:
            if R.random() < .75:
                k = R.choice(list(HUE)); turn = (HUE[k] - hue + .5) % 1 - .5
            else:
                k = min(HUE, key=lambda q: abs((HUE[q] - hue + .5) % 1 - .5))
            n, colour = k + " " + n, k
        if tone:
            n += (" with light skin", " with brown skin", " with dark skin")[tone - 1]
        self.seen.append((self.c[ci]["name"], colour))
        return art(n) if R.random() < .85 else n, s, (i, w, h, turn, spare), ci, n

    def __call__(self):
        while True:
            self.seen = []
            out, kind = self.draw()
            if not self.seen or not held(*zip(*self.seen), kind):
                return out

    def draw(self):
        R = self.rng
        slots = []
        u = R.random()
        alone = False
        pr = R.random()
        if pr < .36:   # cut out
            place = R.choice(["on a transparent background", "cut out", "cutout", "as a cut-out"])
            colour, row, kind, time = COL["white"], -2, None, "day"
            u = .1 + .78 * u   # seldom two
        elif pr < .48:   # plain
            k = "white" if R.random() < .55 else R.choice(list(COL))
            place = "" if (k == "white" and R.random() < .6) else R.choice(["on a {} background", "{} background", "on {}"]).format(k)
            colour, row, kind, time = COL[k], -1, None, "day"
        else:
            kind = R.choice(KINDS)
            time = "day" if kind in ("space", "underwater") else R.choices(TIMES, [.55, .22, .13, .1])[0]
            if time == "rain" and kind in ("room", "table", "sky", "snow"):
                time = "day"
            a, b = self.bank[kind, time]
            row, colour = R.randrange(a, b), (255, 255, 255)
            place = R.choice(SCENES[kind][0])
            if time != "day" or R.random() < .08 and kind not in ("space", "underwater", "room", "table"):
                place += " " + R.choice(TIMEP[time])
            alone = pr > .85
        feet = 1 if kind is None else SCENES[kind][2]
        tint = 1.0 if time in ("night",) and kind not in ("room", "table") else .5 if time == "night" else 0.0
        ground = kind is not None and feet == 1
        def slot(f, cx, cy, sc, sh=True, flip=None):
            i, w, h, turn, spare = f
            fl = (R.random() < .3) if flip is None else flip
            slots.append([i, cx, cy, sc, float(fl), turn, float(sh and ground), tint, spare])
        def stand(f, sc, base):   # centre height for an object standing at `base`
            return base - f[2] * sc / 2
        if alone:
            what = R.choice(["{}", "{}", "{}", "a view of {}", "a landscape with {}", "{} without anyone", "empty scenery, {}"]).format(R.choice(NOUN[kind]))
            if time != "day" or R.random() < .15:
                what += " " + R.choice(TIMEP[time])
            st = None
        elif u < .72:
            what, st, f, ci, n = self.subject()
            flip = False if re.search(r"\b(left|right|face)\b|book|clock|musical", n) else None
            if kind is None:
                sc = R.choice([.84, .84, .8, .7, .6]); slot(f, .5 + R.uniform(-.03, .03), .5 + R.uniform(-.03, .03), sc, False, flip)
            elif ground:
                sc = R.uniform(.44, .68); slot(f, .5 + R.uniform(-.14, .14), stand(f, sc, R.uniform(.82, .93)), sc, True, flip)
            else:
                sc = R.uniform(.42, .68); slot(f, .5 + R.uniform(-.12, .12), (.5 if feet == 0 else .55) + R.uniform(-.08, .08), sc, False, flip)
        elif u < .8:   # several of one kind
            k = R.choice([2, 2, 3]); what, st, f, ci, n = self.subject()
            if re.search(r"[^s]s$|\b(man|woman|person|people|men|women)\b| with ", n):
                k = 1
            if k == 1:
                sc = .6; slot(f, .5, stand(f, sc, .88) if ground else .5, sc)
            else:
                pl = re.sub(r"y$", "ie", n) if re.search(r"[^aeou]y$", n) else n
                pl += "es" if re.search(r"(s|sh|ch|x)$", pl) else "s"
                what = ("two ", "three ")[k - 2] + pl
                sc = (.42, .31)[k - 2] * R.uniform(.95, 1.08); base = R.uniform(.8, .92)
                fl = R.random() < .3
                for q in range(k):
                    slot(f, (q + .5) / k * .94 + .03, (stand(f, sc, base) if ground else .5) + R.uniform(-.03, .03), sc, True, fl)
        else:
            w1, st, f1, c1, n1 = self.subject(); w2, _, f2, c2, n2 = self.subject(st)
            rel = R.random(); base = R.uniform(.82, .92)
            if rel < .8 or ground:
                left = R.random() < .5
                if rel < .45: what = f"{w1} and {w2}"
                elif rel < .65: what = f"{w1} next to {w2}"
                else:
                    what = R.choice(["{} on the left and {} on the right", "{} to the left of {}"]).format(w1, w2); left = True
                xs = (.28, .72) if left else (.72, .28)
                for f, cx in ((f1, xs[0]), (f2, xs[1])):
                    sc = R.uniform(.4, .48); slot(f, cx + R.uniform(-.02, .02), stand(f, sc, base) if ground else .5 + R.uniform(-.04, .04), sc)
            else:
                what = R.choice(["{} above {}", "{} over {}"]).format(w1, w2)
                for f, cy in ((f1, .27), (f2, .73)):
                    sc = R.uniform(.38, .45); slot(f, .5 + R.uniform(-.03, .03), cy, sc, False)
        if place and not alone:
            what = f"{what}{R.choice([' ', ' ', ', '])}{place}"
        if st is not None and R.random() < .62:
            what = R.choice(STYLEP[self.st[st]]).format(what)
        if slots and st is not None and u < .72 and R.random() < .08 and self.c[ci]["kw"]:
            what += ", " + ", ".join(R.sample(self.c[ci]["kw"], min(len(self.c[ci]["kw"]), R.choice([1, 2]))))
        v = R.random()
        what = what[0].upper() + what[1:] if v < .12 else what + "." if v < .18 else what
        while len(slots) < NSLOT:
            slots.append([-1, 0, 0, 0, 0, 0, 0, 0, 0])
        return (what, [row, *[q / 255 for q in colour]], slots), kind
