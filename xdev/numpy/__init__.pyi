from numpy import *
from numpy import fft as fft, linalg as linalg, random as random, testing as testing
