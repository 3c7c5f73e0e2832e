"""DSPDC and SPD1-VR: doubly stochastic methods."""
