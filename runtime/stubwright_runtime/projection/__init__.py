"""Tools as the APIs of models take them, and back: what a model is given, and what its answer means in the contract."""
