// Package config admits the configuration of a Package against the structural schema in its manifest, as an API server
// admits a custom resource: defaults, validation, CEL rules. Unknown keys are returned by path, to reject or drop. Costs
// are those of API servers.
package config
