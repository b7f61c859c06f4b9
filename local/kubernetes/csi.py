"""The EBS CSI driver's controller: volumes for claims, attached where their pods run, and grown.

The Kubernetes controllers decide, through PersistentVolumeClaims and VolumeAttachments; EC2 (moto)
holds the volumes; volumes/<id> is what is on them.

Run it as `python -m local.kubernetes.csi` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from local.journal import journal
from local.kubernetes.attacher import Attacher
from local.kubernetes.client import Api
from local.kubernetes.identity import AsDriver
from local.kubernetes.provisioner import Provisioner
from local.kubernetes.resizer import Resizer
from local.place import Place
from local.stopping import stop_event


def main() -> None:
    """Run the controller of the twin named by STILLWATER_TWIN until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    place = Place.load()
    api = Api.load_kubeconfig(place.path("kubeconfig"))
    stopped = stop_event()
    ec2: Any = AsDriver(place)
    facts = journal(place)
    provisioner, attacher = Provisioner(place, api, ec2, facts), Attacher(api, ec2, facts)
    resizer = Resizer(api, ec2, facts)
    provisioner.wait_synced()
    resizer.wait_synced()
    attacher.wait_synced()
    stopped.wait()
    # Informers are daemon threads that may sit in a read; every step taken is in EC2 or the API.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
