"""Names what a Strimzi container finds in its pod, and what stands in its config till it starts."""

from __future__ import annotations

# Where the operator's pods mount the ConfigMap of their own node, and what it holds.
CONFIG_MOUNT = "/opt/kafka/custom-config"
SERVER_CONFIG = "server.config"
CLUSTER_ID = "cluster.id"
METADATA_VERSION = "metadata.version"
# Stands in server.config for the address the pod is given only when it starts.
POD_ADDRESS = "${POD_ADDRESS}"
# Secrets of PEM texts; next to each mount <mount>.pem stands for all of it in one file.
NODE_CERTS = "/opt/kafka/node-certs"
CLUSTER_CA_CERTS = "/opt/kafka/cluster-ca-certs"
CLIENT_CA_CERTS = "/opt/kafka/client-ca-certs"
CONNECT_CERTS = "/opt/kafka/connect-certs"
# A Connect worker mounts this one instead.
CONNECT_CONFIG = "connect.properties"
# Stands for the rack: what the node the pod was scheduled to carries under the label named here.
RACK = "${STRIMZI_RACK_ID}"
RACK_LABEL = "rack.topology.key"
