"""`stubwright diff`: what changed between two manifests, and whom it breaks."""
