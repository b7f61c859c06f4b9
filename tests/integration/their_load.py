"""The demo's load on a Kafka that is not the demo's: `their_load NAMESPACE KAFKA BOOTSTRAP DIR`."""

import sys
from pathlib import Path

from local.demo import clients, load

if __name__ == "__main__":
    namespace, kafka, bootstrap, directory = sys.argv[1:]
    clients.NAMESPACE, clients.CLUSTER = namespace, kafka
    load.run(bootstrap.split(","), Path(directory))
