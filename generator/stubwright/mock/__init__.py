"""`stubwright mock`: a server that answers with examples, or with values made from schemas."""
