"""Names the columns of split cost allocation data, in CUR 2.0's words."""

from __future__ import annotations

from spark.tag_keys import column_spellings

PARENT = "split_line_item_parent_resource_id"
SPLIT, UNUSED = "split_line_item_split_cost", "split_line_item_unused_cost"
NET = {SPLIT: "split_line_item_net_split_cost", UNUSED: "split_line_item_net_unused_cost"}
COLUMNS = (PARENT, SPLIT, UNUSED)
# AWS's own tags of a pod, which need no activation to be in the export's map.
EKS_TAGS = {
    "eks_cluster": "aws:eks:cluster-name",
    "namespace": "aws:eks:namespace",
    "workload_type": "aws:eks:workload-type",
    "workload": "aws:eks:workload-name",
}
OF_LINE = (
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_resource_id",
    "line_item_line_item_type",
    "line_item_operation",
    "line_item_usage_type",
    "line_item_usage_amount",
)
# The columns that such a tag may have for itself, and its key.
EKS_TAG_COLUMNS = {name: key for key in EKS_TAGS.values() for name in column_spellings(key)}
