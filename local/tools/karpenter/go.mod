module stillwater.local/tools/karpenter

go 1.26.2

require github.com/aws/karpenter-provider-aws v1.14.1
