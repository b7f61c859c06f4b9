"""Components that take facts (names, ids), for programs in any language: `pulumi package add`."""
