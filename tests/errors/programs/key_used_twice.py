from fgrad import random

key = random.key(0)
x = random.normal(key, (3,))
y = random.uniform(key, (3,))
