from fgrad import random

x = random.normal(0, (3,))
