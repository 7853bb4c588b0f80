"""`make test-containers`: the images are built and compose.yaml runs, with Docker and no registry of images."""
